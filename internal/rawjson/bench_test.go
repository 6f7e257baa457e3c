package rawjson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// body returns a request of about n bytes as agents send it: long texts with line feeds, quotes and tabs.
func body(n int) []byte {
	return fill(n, "func main() {\n\tfmt.Println(\"hello, world\")\n}\n// The quick brown fox jumps over the lazy dog.\n")
}

func fill(n int, text string) []byte {
	var b strings.Builder
	b.WriteString(`{"model":"m","messages":[{"role":"system","content":"You are a helpful agent."}`)
	for i := 0; b.Len() < n; i++ {
		arguments := fmt.Sprintf(`{"path":"src/file_%d.go","start":%d,"end":%d}`, i, i, i+100)
		fmt.Fprintf(&b, `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"read","arguments":%s}}]}`,
			i, rawjson.AppendQuote(nil, arguments))
		fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":"call_%d","content":%s}`, i, rawjson.AppendQuote(nil, strings.Repeat(text, 1+i%20)))
	}
	b.WriteString(`],"stream":true}`)
	return []byte(b.String())
}

func BenchmarkValid(b *testing.B) {
	texts := []struct {
		name string
		text []byte
	}{
		{"code", body(1 << 20)},
		{"prose", fill(1<<20, strings.Repeat("The quick brown fox jumps over the lazy dog. ", 4)+"\n")},
		{"cjk", fill(1<<20, "いろはにほへと散りぬるを我が世誰そ常ならむ。\n")},
		{"many-messages", fill(1<<20, "x")},
	}
	ways := []struct {
		name  string
		valid func([]byte) bool
	}{
		{"rawjson", func(p []byte) bool { return rawjson.Valid(p, 0) == nil }},
		{"jsontext", func(p []byte) bool { return jsontext.Value(p).IsValid(jsontext.AllowDuplicateNames(true)) }},
		{"encoding-json", json.Valid},
	}
	for _, text := range texts {
		for _, way := range ways {
			b.Run(text.name+"/"+way.name, func(b *testing.B) {
				b.SetBytes(int64(len(text.text)))
				b.ReportAllocs()
				for b.Loop() {
					if !way.valid(text.text) {
						b.Fatal("not valid")
					}
				}
			})
		}
	}
}
