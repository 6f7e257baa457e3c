package chat_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
	"github.com/dewpoint-proxy/dewpoint/session"
)

func digestOf(t interface{ Fatalf(string, ...any) }, message string) session.Hash {
	r, err := chat.New(chat.Options{}).Split("", []byte(`{"messages":[`+message+`]}`))
	if err != nil {
		t.Fatalf("%s: %v", message, err)
	}
	return r.Messages[0].Digest
}

func call(arguments string) string {
	return `{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":` + arguments + `}}]}`
}

func TestDigestEqual(t *testing.T) {
	f := func(messages ...string) {
		t.Helper()
		for _, m := range messages[1:] {
			if digestOf(t, m) != digestOf(t, messages[0]) {
				t.Errorf("%s\ndiffers from %s", m, messages[0])
			}
		}
	}
	f(`{"role":"system","content":"a"}`, `{"content":"a","role":"developer"}`, `{"role":"sys\u0074em","content":"\u0061"}`)
	f(`{"role":"assistant","content":null}`, `{"role":"assistant"}`, `{"role":"assistant","content":""}`, `{"role":"assistant","content":[]}`,
		`{"role":"assistant","content":[{"type":"text","text":""}]}`, `{"role":"assistant","content":[{"type":"thinking","thinking":"t"}]}`)
	f(`{"role":"user","content":"a/é😀\n\u001b\""}`, `{"role":"user","content":"\u0061\/\u00E9\ud83d\ude00\u000a\u001B\u0022"}`,
		`{"role":"user","content":[{"type":"text","text":"a/é😀\n\u001b\""}]}`,
		`{"role":"user","content":[{"text":"a/é😀\n\u001b\"","cache_control":{"type":"ephemeral"},"type":"text","annotations":null}]}`,
		`{"role":"user","content":[{"type":"redacted_thinking","data":"x"},{"t\u0065xt":"a/é😀\n\u001b\"","type":"text"}]}`)
	f(`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u","detail":"low"}}]}`,
		`{"role":"user","content":[ {"text":"\u0061","type":"text","cache_control":{}}, {"image_url":{"detail":"low","url":"u"},"type":"image_url","x":null} ]}`)
	f(`{"role":"assistant","content":"a"}`, `{"role":"assistant","content":"a","refusal":null,"reasoning":"r","reasoning_content":"c","parsed":{},
		"annotations":[],"audio":null,"reasoning_details":[{"signature":"s"}],"thinking_blocks":[{"data":"x"}],"cache_control":{},"local":1,
		"name":null,"tool_calls":null,"function_call":null,"tool_call_id":null}`, `{"role":"assistant","content":"a","tool_calls":[]}`)
	f(call(`"{\"a\":1,\"b\":[true,{\"x\":\"é\",\"y\":null}]}"`), call(`" { \"b\" : [ true , { \"y\" : null, \"x\" : \"\\u00e9\" } ] ,\n \"a\" : 1 } "`),
		call(`{"b":[true,{"x":"\u00e9","y":null}],"a":1}`))
	f(call(`""`), call(`"{}"`), call(`null`), call(`" { } "`))
	f(call(`"not json \/ é"`), call(`"not json / \u00e9"`))
	f(`{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f"}}]}`,
		`{"role":"assistant","content":"","tool_calls":[{"function":{"arguments":"{}","name":"f"},"type":"function","id":"1","index":0}]}`)
	long := "[" + strings.Repeat("{},", 20000) + "{}]"
	f(`{"role":"user","content":`+long+`}`, `{"content":`+long+`,"role":"user"}`)
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	f(`{"role":"user","content":`+deep+`}`, `{"content":`+deep+`,"role":"user"}`)
}

func TestDigestDifferent(t *testing.T) {
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	messages := []string{
		`{"role":"user"}`,
		`{"role":"system"}`,
		`{"role":"tool"}`,
		`{"role":"function"}`,
		`{"role":"user","content":"a"}`,
		`{"role":"user","content":"A"}`,
		`{"role":"user","content":"a "}`,
		`{"role":"user","content":"a\n"}`,
		`{"role":"user","content":"a\\n"}`,
		`{"role":"user","content":5}`,
		`{"role":"user","content":"5"}`,
		`{"role":"user","content":true}`,
		`{"role":"user","content":{}}`,
		`{"role":"user","content":"\ud800"}`,
		`{"role":"user","content":"\ud801"}`,
		`{"role":"user","content":"\ufffd"}`,
		`{"role":"user","content":"\\ud800"}`,
		`{"role":"user","content":"\ud800\udc00"}`,
		`{"role":"user","content":"\udc00\ud800"}`,
		`{"role":"user","name":"a"}`,
		`{"role":"user","tool_call_id":"a"}`,
		`{"role":"user","name":"a","tool_call_id":"a"}`,
		`{"role":"user","name":5}`,
		`{"role":"user","content":["a"]}`,
		`{"role":"user","content":["a","b"]}`,
		`{"role":"user","content":["ab"]}`,
		`{"role":"user","content":[["a","b"]]}`,
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
		`{"role":"user","content":[{"type":"text","text":"b"},{"type":"text","text":"a"}]}`,
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":""}]}`,
		`{"role":"user","content":"{\"text\":\"a\",\"type\":\"text\"}"}`,
		`{"role":"user","content":[{"type":"text","text":"a","x":1}]}`,
		`{"role":"user","content":[{"type":"text","text":["a"]}]}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"u","detail":null}}]}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"u","cache_control":1}}]}`,
		`{"role":"user","content":` + deep + `}`,
		`{"role":"user","content":[` + deep + `]}`,
		`{"role":"user","content":[` + strings.Repeat("{},", 20000) + `{}]}`,
		`{"role":"user","content":[` + strings.Repeat("{},", 20001) + `{}]}`,
		`{"role":"assistant"}`,
		`{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}`,
		`{"role":"assistant","function_call":{"name":"g","arguments":"{}"}}`,
		call(`"{}"`),
		call(`"[]"`),
		call(`"null"`),
		call(`" "`),
		call(`"{\"a\":1}"`),
		call(`"{\"a\":1.0}"`),
		call(`"{\"a\":\"1\"}"`),
		call(`"{\"a\":1,\"a\":2}"`),
		call(`"{\"a\":2,\"a\":1}"`),
		call(`"{\"a\":null}"`),
		call(`"{\"a\":1"`),
		call(`"{\"a\": 1"`),
		call(`"{\"a\":[1,2]}"`),
		call(`"{\"a\":[2,1]}"`),
		call(`"\"\\ud800\""`),
		call(`"\"\ud800\""`),
		call(`"\"\ufffd\""`),
		call(`"` + deep + `"`),
		call(`" ` + deep + `"`),
		`{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"g"}}]}`,
		`{"role":"assistant","tool_calls":[{"id":"2","function":{"name":"f"}}]}`,
		`{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}`,
		`{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f"}},{"id":"1","function":{"name":"f"}}]}`,
		`{"role":"assistant","tool_calls":[{"id":"1","type":"custom","custom":{"name":"f","input":"{}"}}]}`,
		`{"role":"assistant","tool_calls":[{"id":"1","type":"custom","custom":{"name":"f","input":"{} "}}]}`,
		`{"role":"assistant","tool_calls":[{"id":"1","type":"other","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"assistant","tool_calls":[{"id":"1"}]}`,
		`{"role":"assistant","tool_calls":[{}]}`,
		`{"role":"assistant","content":"x","tool_calls":[{}]}`,
	}
	seen := map[session.Hash]string{}
	for _, m := range messages {
		h := digestOf(t, m)
		if other, ok := seen[h]; ok {
			t.Errorf("%s\nequals %s", m, other)
		}
		seen[h] = m
	}
}

// The digest does not depend on the order, white space and escapes that an encoder chooses.
func TestDigestSurvivesReencoding(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		message := drawMessage(t)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1))
		one, two := encode(r, message), encode(r, message)
		if digestOf(t, one) != digestOf(t, two) {
			t.Fatalf("%s\ndiffers from %s", one, two)
		}
	})
}

// A longer text or another value anywhere changes the digest.
func TestDigestSeesEveryChange(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		message := drawMessage(t)
		r := rand.New(rand.NewPCG(1, 1))
		before := digestOf(t, encode(r, message))
		var leaves []func()
		collect(message, &leaves)
		rapid.SampledFrom(leaves).Draw(t, "leaf")()
		if after := encode(r, message); digestOf(t, after) == before {
			t.Fatalf("no change seen in %s", after)
		}
	})
}

func drawMessage(t *rapid.T) map[string]any {
	text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("/\\\"\n\x1b\x00é漢😀"))))
	arguments := encode(rand.New(rand.NewPCG(3, 3)), map[string]any{"path": text.Draw(t, "path"), "n": json.Number("12"), "list": []any{text.Draw(t, "item"), true}})
	m := map[string]any{"role": "assistant", "content": text.Draw(t, "text") + "x", "name": text.Draw(t, "name")}
	if rapid.Bool().Draw(t, "parts") {
		m["content"] = []any{
			map[string]any{"type": "text", "text": text.Draw(t, "part")},
			map[string]any{"type": "image_url", "image_url": map[string]any{"url": text.Draw(t, "url"), "detail": "low"}},
		}
	}
	if rapid.Bool().Draw(t, "calls") {
		m["tool_calls"] = []any{map[string]any{"id": text.Draw(t, "id"), "type": "function",
			"function": map[string]any{"name": text.Draw(t, "tool"), "arguments": arguments}}}
	}
	return m
}

// collect finds what can be changed: all texts but the role, and those within arguments.
func collect(v any, leaves *[]func()) {
	change := func(set func(any), old any) {
		if s, ok := old.(string); ok {
			*leaves = append(*leaves, func() { set(s + "!") })
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{"content", "name", "text", "type", "image_url", "url", "detail", "tool_calls", "id", "function", "arguments"} {
			if old, ok := v[key]; ok {
				change(func(n any) { v[key] = n }, old)
				collect(old, leaves)
			}
		}
	case []any:
		for i := range v {
			collect(v[i], leaves)
		}
	}
}

// encode encodes JSON in a random way.
func encode(r *rand.Rand, v any) string {
	space := func() string { return []string{"", "", " ", "\n\t"}[r.IntN(4)] }
	switch v := v.(type) {
	case map[string]any:
		var members []string
		for key, member := range v {
			members = append(members, space()+encodeText(r, key, false)+space()+":"+space()+encode(r, member)+space())
		}
		r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		return "{" + strings.Join(members, ",") + "}"
	case []any:
		var elements []string
		for _, element := range v {
			elements = append(elements, space()+encode(r, element)+space())
		}
		return "[" + strings.Join(elements, ",") + "]"
	case string:
		return encodeText(r, v, true)
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// encodeText encodes a string with random escapes.
func encodeText(r *rand.Rand, s string, escape bool) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case escape && r.IntN(4) == 0 && c < 0x10000:
			fmt.Fprintf(&b, []string{`\u%04x`, `\u%04X`}[r.IntN(2)], c)
		case escape && r.IntN(4) == 0 && c >= 0x10000:
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xD800+(c-0x10000)>>10, 0xDC00+(c-0x10000)&0x3FF)
		case escape && c == '/' && r.IntN(2) == 0:
			b.WriteString(`\/`)
		default:
			one, _ := json.Marshal(string(c))
			b.Write(one[1 : len(one)-1])
		}
	}
	b.WriteByte('"')
	return b.String()
}
