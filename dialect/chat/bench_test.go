package chat_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// agentBody returns a request of about n bytes as a coding agent sends it: calls with arguments, results full of code.
func agentBody(n int) []byte {
	const code = "func main() {\n\tfmt.Println(\"hello, world\")\n}\n// The quick brown fox jumps over the lazy dog.\n"
	var b strings.Builder
	b.WriteString(`{"model":"m","messages":[{"role":"system","content":"You are a helpful agent."},{"role":"user","content":[{"type":"text","text":"Fix it."}]}`)
	for i := 0; b.Len() < n; i++ {
		arguments := fmt.Sprintf(`{"path": "src/file_%d.go", "content": %s, "end": %d}`, i, rawjson.AppendQuote(nil, strings.Repeat(code, i%4)), i)
		fmt.Fprintf(&b, `,{"role":"assistant","content":"Next file.","tool_calls":[{"id":"call_%d","type":"function","function":{"name":"edit","arguments":%s}}]}`,
			i, rawjson.AppendQuote(nil, arguments))
		fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":"call_%d","content":%s}`, i, rawjson.AppendQuote(nil, strings.Repeat(code, 1+i%20)))
	}
	b.WriteString(`],"stream":true}`)
	return []byte(b.String())
}

var sizes = []struct {
	name  string
	bytes int
}{{"10KB", 10 << 10}, {"100KB", 100 << 10}, {"1MB", 1 << 20}, {"4MB", 4 << 20}}

// BenchmarkSplit slices and digests. For comparison, other benchmarks of the same sizes only validate or only unmarshal.
func BenchmarkSplit(b *testing.B) {
	d := chat.New(chat.Options{Fields: []string{"metadata.session_id"}})
	bench(b, func(body []byte) bool {
		r, err := d.Split("", body)
		return err == nil && len(r.Messages) > 0
	})
}

// BenchmarkSplitKnown splits bodies that have grown by two messages since they were remembered.
func BenchmarkSplitKnown(b *testing.B) {
	const end, more = `],"stream":true}`, `,{"role":"assistant","content":"Next."},{"role":"user","content":"Go on."}`
	for _, size := range sizes {
		b.Run(size.name, func(b *testing.B) {
			var d *chat.Dialect
			var body []byte
			b.SetBytes(int64(size.bytes))
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if n%64 == 0 {
					b.StopTimer()
					d, body = chat.New(chat.Options{Remember: 64 << 20}), agentBody(size.bytes)
					if _, err := d.Split("", body); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
				body = append(append(body[:len(body)-len(end)], more...), end...)
				if _, err := d.Split("", body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncodingJSONUnmarshal(b *testing.B) {
	bench(b, func(body []byte) bool {
		var r struct{ Messages []json.RawMessage }
		return json.Unmarshal(body, &r) == nil && len(r.Messages) > 0
	})
}

func BenchmarkJSONTextValid(b *testing.B) {
	bench(b, func(body []byte) bool { return jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true)) })
}

func BenchmarkScanOnly(b *testing.B) {
	bench(b, func(body []byte) bool { return rawjson.Valid(body, 0) == nil })
}

func bench(b *testing.B, f func([]byte) bool) {
	for _, size := range sizes {
		body := agentBody(size.bytes)
		b.Run(size.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if !f(body) {
					b.Fatal("the body is refused")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(float64(len(body))/(1<<20)), "ns/MiB")
		})
	}
}

// BenchmarkHostile splits 4 MB designed to be slow. The time must stay proportional to the size.
func BenchmarkHostile(b *testing.B) {
	const size = 4 << 20
	nested := func() string {
		filler := strings.Repeat("x", size)
		return strings.Repeat(`{"b":`, 62) + `"` + filler + `"` + strings.Repeat(`,"a":0}`, 62)
	}
	var keys strings.Builder
	for i := size / 16; i > 0; i-- {
		fmt.Fprintf(&keys, `"key%08d":0,`, i)
	}
	arguments := func(text string) string {
		return `{"role":"assistant","tool_calls":[{"function":{"arguments":` + string(rawjson.AppendQuote(nil, text)) + `}}]}`
	}
	bodies := []struct{ name, message string }{
		{"nested-arguments", arguments(nested())},
		{"many-keys", arguments(`{` + keys.String() + `"a":0}`)},
		{"deep-arguments", arguments(strings.Repeat("[", size))},
		{"nested-part", `{"role":"user","content":[` + nested() + `]}`},
		{"many-parts", `{"role":"user","content":[` + strings.Repeat(`{},`, size/3) + `{}]}`},
		{"many-calls", `{"role":"assistant","tool_calls":[` + strings.Repeat(`{},`, size/3) + `{}]}`},
		{"many-messages", strings.Repeat(`{"role":"user"},`, 60000) + `{"role":"user"}`},
		{"escapes", `{"role":"user","content":"` + strings.Repeat(`\ud800`, size/6) + `"}`},
	}
	d := chat.New(chat.Options{})
	for _, body := range bodies {
		b.Run(body.name, func(b *testing.B) {
			text := wrap([]byte(body.message))
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if r, err := d.Split("", text); (r == nil) == (err == nil) {
					b.Fatal("neither sliced nor told why not")
				}
			}
		})
	}
}

func BenchmarkTee(b *testing.B) {
	d := chat.New(chat.Options{})
	piece := []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}` + "\n\n")
	b.SetBytes(int64(len(piece)))
	b.ReportAllocs()
	t := d.Tee(true)
	for b.Loop() {
		t.Write(piece)
	}
}
