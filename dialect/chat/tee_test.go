package chat_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/session"
)

func tee(streamed bool, pieces ...string) dialect.Tee {
	t := chat.New(chat.Options{}).Tee(streamed)
	for _, p := range pieces {
		t.Write([]byte(p))
	}
	return t
}

const talk = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}

: keep-alive

data: {"choices":[{"index":0,"delta":{"content":"Hel"}},{"index":1,"delta":{"content":"no"}}]}

data: {"choices":[{"index":0,"delta":{"content":"lo\u00e9"}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"ls","arguments":""}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}},{"index":1,"id":"b","function":{"name":"cat"}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}},{"index":1,"function":{"arguments":"{}"}}]}}]}

data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}],"usage":null}

data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4}}}

data: [DONE]

`

var talked = dialect.Answer{
	Text:   "Helloé",
	Wrote:  18,
	Calls:  []session.Call{{ID: "a", Name: "ls", Arguments: `{"x":1}`}, {ID: "b", Name: "cat", Arguments: "{}"}},
	Usage:  &session.Usage{Input: 10, Cached: 4, Output: 5},
	Finish: "tool_calls",
}

func TestTeeStream(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		stream := strings.ReplaceAll(talk, "\n", end)
		for size := 1; size <= len(stream); size += 1 + size/4 {
			te := tee(true)
			for from := 0; from < len(stream); from += size {
				te.Write([]byte(stream[from:min(from+size, len(stream))]))
			}
			if got := te.Answer(); !te.Ended() || !reflect.DeepEqual(got, talked) {
				t.Fatalf("line end %q, pieces of %d: ended %v, %+v", end, size, te.Ended(), got)
			}
		}
	}
}

func TestTeeStreamEnds(t *testing.T) {
	f := func(stream string, want bool) {
		t.Helper()
		if got := tee(true, stream).Ended(); got != want {
			t.Errorf("%q: %v", stream, got)
		}
	}
	f("", false)
	f("data: [DONE]\n\n", true)
	f("data:[DONE]\n", true)
	f("data: [DONE]", true)
	f("data: [DONE", false)
	f("data: [DONE]x", false)
	f("\xef\xbb\xbfdata: [DONE]\n", true)
	f(": [DONE]\n\n", false)
	f("event: x\ndata: [DONE]\n", true)
	f(`data: {"choices":[{"finish_reason":"stop"}]}`+"\n\n", false)
	f(`data: {"choices":[{"delta":{"content":"[DONE]"}}]}`+"\n\n", false)
	f("data: [DONE]\n\ndata: {}\n\n", true)
}

func TestTeeStreamReads(t *testing.T) {
	f := func(stream string, want dialect.Answer) {
		t.Helper()
		got := tee(true, stream).Answer()
		want.Wrote = got.Wrote
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %+v\nwant %+v", stream, got, want)
		}
	}
	say := func(s string) string { return `data: {"choices":[{"delta":{"content":"` + s + `"}}]}` + "\n" }
	f(say("a")+say("b"), dialect.Answer{Text: "ab"}) // no empty lines between events
	f("data: {\"choices\":[{\"delta\":\ndata: {\"content\":\ndata\ndata: \"a\"}}]}\n\n"+say("b"), dialect.Answer{Text: "ab"})
	f("data: {\"choices\":[{\"delta\":\r\ndata: {\"content\":\"a\"}}]}\r\n\r\n", dialect.Answer{Text: "a"}) // a line ends in both
	f(say("a")+"data: junk\n\ndata: {\"choices\":[\n\n"+say("b"), dialect.Answer{Text: "ab", Garbled: true})
	f(`data: {"choices":[{"delta":{"content":[{"type":"thinking"},{"type":"text","text":"a"}]}}]}`+"\n\n", dialect.Answer{Text: "a"})
	f(say("a")+"data: "+strings.Repeat("x", 2*split.MaxAnswer)+"\n\n"+say("b"), dialect.Answer{Text: "ab"})
	f(say("a")+strings.Repeat("data: "+strings.Repeat("x", split.MaxAnswer/3)+"\n", 9)+"\n"+say("b"), dialect.Answer{Text: "ab"})
	half := strings.Repeat("a", split.MaxText/2)
	f(say(half)+say(half), dialect.Answer{Text: half + half})
	f(say(half)+say(half+"a")+say("b"), dialect.Answer{Lost: true})
	f(`data: {"choices":[{"delta":{"content":null},"usage":{"prompt_tokens":3,"completion_tokens":1,"cached_tokens":2}}]}`+"\n\n",
		dialect.Answer{Usage: &session.Usage{Input: 3, Cached: 2, Output: 1}})
	f(`data: {"usage":{"completion_tokens":1}}`+"\n\n", dialect.Answer{Usage: &session.Usage{Output: 1}})
	f(`data: {"usage":{"prompt_tokens":3,"completion_tokens":1,"prompt_cache_hit_tokens":2}}`+"\n\n"+`data: {"usage":{}}`+"\n\n",
		dialect.Answer{Usage: &session.Usage{Input: 3, Cached: 2, Output: 1}})
	f(`data: {"usage":{"prompt_tokens":3,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":90}}}`+"\n\n",
		dialect.Answer{Usage: &session.Usage{Input: 93, Cached: 90, Output: 1}}) // prompt_tokens without the cached ones
	f(`data: {"usage":{"prompt_tokens":100,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}}}`+"\n\n",
		dialect.Answer{Usage: &session.Usage{Input: 100, Cached: 60, Written: 30, Output: 1}})
	f(`data: {"usage":{"prompt_tokens":100,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":60,"cache_creation_tokens":30}}}`+"\n\n",
		dialect.Answer{Usage: &session.Usage{Input: 100, Cached: 60, Written: 30, Output: 1}})
	f(`data: {"usage":{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}}}`+"\n\n",
		dialect.Answer{Usage: &session.Usage{Input: 100, Cached: 60, Written: 30, Output: 1}}) // prompt_tokens without either
	f(`data: {"usage":{"prompt_tokens":999999999999999999,"completion_tokens":-5}}`+"\n\n",
		dialect.Answer{Usage: &session.Usage{Input: 1 << 26}}) // no sum of such counts may overflow
	f(`data: {"choices":[{"delta":{"function_call":{"name":"f","arguments":"{"}}}]}`+"\n\n"+
		`data: {"choices":[{"delta":{"function_call":{"arguments":"}"}}}]}`+"\n\n",
		dialect.Answer{Calls: []session.Call{{ID: "f", Name: "f", Arguments: "{}"}}})
}

func TestTeeCalls(t *testing.T) {
	piece := func(s string) string { return `data: {"choices":[{"delta":{"tool_calls":[` + s + `]}}]}` + "\n\n" }
	f := func(stream string, want ...session.Call) {
		t.Helper()
		if got := tee(true, stream).Answer().Calls; !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %+v\nwant %+v", stream, got, want)
		}
	}
	// All calls have the index 0, or no index.
	f(piece(`{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}`)+piece(`{"index":0,"id":"b","function":{"name":"g","arguments":"2"}}`),
		session.Call{ID: "a", Name: "f", Arguments: "1"}, session.Call{ID: "b", Name: "g", Arguments: "2"})
	f(piece(`{"id":"a","function":{"name":"f","arguments":"1"}},{"id":"b","function":{"name":"g","arguments":"2"}}`),
		session.Call{ID: "a", Name: "f", Arguments: "1"}, session.Call{ID: "b", Name: "g", Arguments: "2"})
	// Every piece has the same id, or a new one.
	f(piece(`{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}`)+piece(`{"index":0,"id":"a","function":{"name":"f","arguments":"2"}}`),
		session.Call{ID: "a", Name: "f", Arguments: "12"})
	f(piece(`{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}`)+piece(`{"index":0,"id":"b","function":{"arguments":"2"}}`),
		session.Call{ID: "a", Name: "f", Arguments: "12"})
	f(piece(`{"index":7,"id":"a","type":"custom","custom":{"name":"f","input":"raw"}}`), session.Call{ID: "a", Name: "f", Arguments: "raw"})
	// The limit applies to all arguments together. Arguments beyond it are empty.
	most := strings.Repeat("1", split.MaxText/10*6)
	f(piece(`{"index":0,"id":"a","function":{"name":"f","arguments":"`+most+`"}}`)+
		piece(`{"index":1,"id":"b","function":{"name":"g","arguments":"`+most+`"}}`)+piece(`{"index":1,"function":{"arguments":"2"}}`),
		session.Call{ID: "a", Name: "f", Arguments: most}, session.Call{ID: "b", Name: "g"})
	var many strings.Builder
	for i := range 2000 {
		many.WriteString(piece(fmt.Sprintf(`{"index":%d,"id":"%d","function":{"name":"f"}}`, i, i)))
	}
	if n := len(tee(true, many.String()).Answer().Calls); n != 256 {
		t.Errorf("%d calls are kept", n)
	}
}

func TestTeeWhole(t *testing.T) {
	body := `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"a}\"]","tool_calls":[{"id":"1","type":"function","function":
		{"name":"f","arguments":"{}"}},{"id":"2","function":{"name":"g","arguments":"[]"}}]},"finish_reason":"stop"}],
		"usage":{"prompt_tokens":1,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}`
	want := dialect.Answer{
		Text:   `a}"]`,
		Calls:  []session.Call{{ID: "1", Name: "f", Arguments: "{}"}, {ID: "2", Name: "g", Arguments: "[]"}},
		Usage:  &session.Usage{Input: 1, Output: 2},
		Finish: "stop",
		Wrote:  8,
	}
	te := tee(false)
	for i := range len(body) {
		if te.Ended() || !reflect.DeepEqual(te.Answer(), dialect.Answer{}) {
			t.Fatalf("ended after %d of %d bytes", i, len(body))
		}
		te.Write([]byte{body[i]})
	}
	te.Write([]byte("\n trailing"))
	for range 2 {
		if got := te.Answer(); !te.Ended() || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v", got)
		}
	}
	long := tee(false, `{"x":"`, strings.Repeat("x", split.MaxAnswer), `"}`)
	if !long.Ended() || !reflect.DeepEqual(long.Answer(), dialect.Answer{}) {
		t.Error("a long body ends, unread")
	}
	for _, junk := range []string{``, `null`, `{"choices":`, `{]`, `<html>`, `[1]`, `{"choices":{"a":1}}`, `{"choices":[1,null,{"message":[]}],"usage":[]}`} {
		if got := tee(false, junk).Answer(); !reflect.DeepEqual(got, dialect.Answer{}) {
			t.Errorf("%s: %+v", junk, got)
		}
	}
}
