package messages_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/dialecttest"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
	"github.com/dewpoint-proxy/dewpoint/session"
)

func splitOf(t dialecttest.TB, body string) *dialect.Request {
	return dialecttest.Split(t, messages.New(split.Options{}), body)
}

func TestSplit(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		if got := dialecttest.InShort(splitOf(t, body).Messages); got != want {
			t.Errorf("%s\ngot %s, want %s", body, got, want)
		}
	}
	f(`{"messages":[{"role":"user","content":"a"}]}`, "user")
	f(`{"system":"s","messages":[{"role":"user","content":"a"}]}`, "system user")
	f(`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"system":[{"type":"text","text":"s"}]}`, "system user")
	f(`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"A","name":"n","input":{}},
		{"type":"tool_use","id":"B","name":"n","input":{}}]}]}`, "actionA+B!")
	f(`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":""},{"type":"text","text":"x"}]}]}`, "agent")
	f(`{"messages":[{"role":"assistant","content":[{"type":"redacted_thinking","data":"d"},{"type":"text","text":"x"}]}]}`, "agent!")
	f(`{"messages":[{"role":"assistant","content":[{"type":"compaction","content":"s"}]},{"role":"user","content":"a"}]}`, "system user")
	f(`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"A","content":"x"},{"type":"tool_result","tool_use_id":"B"},
		{"type":"text","text":"a"}, {"type":"text","text":"b"}]}]}`, "observationA observationB user")
}

// TestServerCalls checks that calls of the provider's tools join messages into a unit only if their result is not in the same message.
func TestServerCalls(t *testing.T) {
	const (
		search  = `{"type":"server_tool_use","id":"S","name":"web_search","input":{}}`
		found   = `{"type":"web_search_tool_result","tool_use_id":"S","content":[]}`
		code    = `{"type":"server_tool_use","id":"P","name":"code_execution","input":{}}`
		printed = `{"type":"code_execution_tool_result","tool_use_id":"P","content":{}}`
		plain   = `{"type":"tool_use","id":"A","name":"n","input":{},"caller":{"type":"direct"}}`
		called  = `{"type":"tool_use","id":"A","name":"n","input":{},"caller":{"type":"code_execution_20250825","tool_id":"P"}}`
		inner   = `{"type":"server_tool_use","id":"S","name":"web_search","input":{},"caller":{"type":"code_execution_20250825","tool_id":"P"}}`
		text    = `{"type":"text","text":"x"}`
	)
	f := func(want string, blocks ...string) {
		t.Helper()
		body := `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}]}`
		m := splitOf(t, body).Messages[1]
		if got := fmt.Sprintf("%v %v %s", m.Kind, m.Calls, m.Result); got != want {
			t.Errorf("%s\ngot %s, want %s", body, got, want)
		}
	}
	f("agent [] ", search, found, text)
	f("action [A] ", search, found, plain)
	f("action [A S] ", search, plain)
	f("action [A] S", found, plain)
	f("agent [S] ", text, search)
	f("agent [] S", found, text)
	f("action [A S] P", printed, text, search, plain)
	f("action [A P] ", code, called)
	f("action [A P] P", called)
	f("action [A P] P", inner, found, called)
	f("agent [] ", code, inner, found, printed, text)
	f("agent [] S", found, printed, text)
	f("agent [] ", strings.Replace(found, `"S"`, "5", 1), strings.Replace(search, `"S"`, "null", 1), text)
	f("agent [M] ", strings.Replace(strings.Replace(search, "server_tool", "mcp_tool", 1), `"S"`, `"M"`, 1))
}

func TestSplitRefuses(t *testing.T) {
	f := func(body, code, param string) {
		t.Helper()
		_, err := messages.New(split.Options{}).Split("", []byte(body))
		e, ok := errors.AsType[*dialect.Error](err)
		if !ok || e.Code != code || e.Param != param {
			t.Errorf("%s\ngot %v, want %s %s", body, err, code, param)
		}
	}
	f(`{"messages":[{"role":"user","content":"a","content":"b"}]}`, dialect.CodeDuplicateKey, "messages[0].content")
	f(`{"messages":[{"role":"user","content":[{"type":"text","text":"a","text":"b"}]}]}`, dialect.CodeDuplicateKey, "messages[0].content.text")
	f(`{"system":[{"type":"text","text":"a","text":"b"}],"messages":[{"role":"user","content":"a"}]}`, dialect.CodeDuplicateKey, "content[].text")
	f(`{"messages":[{"role":"user","name":"n","content":[{"type":"tool_result","tool_use_id":"A"}]}]}`, dialect.CodeUnsupported, "messages")
	f(`{"messages":[],"messages":[]}`, dialect.CodeDuplicateKey, "messages")
	f(`{"messages":[{"role":"user","cont\u0065nt":"a"}]}`, dialect.CodeEscapedKey, "messages[0].content")
	f(`{"messages":[{"role":"tool","content":"a"}]}`, dialect.CodeUnsupported, "messages")
	f(`{"messages":[]}`, dialect.CodeUnsupported, "messages")
	f(`{"messages":{}}`, dialect.CodeUnsupported, "messages")
	f(`{"messages":[{"role":"user","content":[5]}]}`, dialect.CodeUnsupported, "messages")
	f(`{"messages":[`, dialect.CodeInvalidJSON, "")
}

func TestRequest(t *testing.T) {
	r := splitOf(t, `{"model":"m","stream":true,"max_tokens":7,"tools":[{"name":"a"}],"thinking":{"type":"enabled","budget_tokens":5},
		"metadata":{"user_id":"{\"session_id\":\"s\"}"},"messages":[{"role":"user","content":"a"}]}`)
	if r.Model != "m" || !r.Stream || r.MaxOutput != 7 || string(r.Tools) != `[{"name":"a"}]` || !r.NeedsReasoning {
		t.Errorf("got %+v", r)
	}
	if r := splitOf(t, `{"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"a"}]}`); r.NeedsReasoning {
		t.Error("adaptive thinking needs no reasoning in an open loop")
	}
}

// TestDigest checks that cache marks and thinking do not count, since clients change them, and that all else does.
func TestDigest(t *testing.T) {
	digest := func(element string) session.Hash {
		all := splitOf(t, `{"messages":[`+element+`]}`).Messages
		return all[len(all)-1].Digest
	}
	same := func(all ...string) {
		t.Helper()
		for _, element := range all[1:] {
			if digest(element) != digest(all[0]) {
				t.Errorf("%s\ndiffers from %s", element, all[0])
			}
		}
	}
	same(`{"role":"user","content":"a"}`, `{"content":[{"text":"a","cache_control":{"type":"ephemeral"},"type":"text"}],"role":"user"}`)
	same(`{"role":"assistant","content":[{"type":"tool_use","id":"A","name":"n","input":{"a":1,"b":2}}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"input":{"b":2,"a":1},"type":"tool_use","id":"A","name":"n"}]}`)
	same(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"A","content":"x"}]}`,
		`{"role":"user","content":[{"tool_use_id":"A","type":"tool_result","is_error":false,"content":[{"type":"text","text":"x"}],"cache_control":{}}]}`)
	same(`{"role":"user","content":"a"}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"A"},{"type":"text","text":"a"}]}`)
	different := []string{
		`{"role":"user","content":"a"}`, `{"role":"user","content":"b"}`, `{"role":"assistant","content":"a"}`,
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"A","content":"a"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"B","content":"a"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"A","content":"a","is_error":true}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"A","name":"n","input":{}}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"A","name":"n","input":{"a":1}}]}`,
	}
	for i, a := range different {
		for _, b := range different[:i] {
			if digest(a) == digest(b) {
				t.Errorf("%s\nand %s share a digest", a, b)
			}
		}
	}
}

func TestRead(t *testing.T) {
	d := messages.New(split.Options{})
	r := splitOf(t, `{"system":[{"type":"text","text":"be kind"}],"messages":[{"role":"user","content":[{"type":"text","text":"a"},
		{"type":"image","source":{"type":"base64","data":"AAAA"}}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"b"},
		{"type":"tool_use","id":"A","name":"ls","input":{"p":1}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"A","content":[{"type":"text","text":"c"}]},{"type":"text","text":"d"},{"type":"text","text":"e"}]}]}`)
	want := []session.Content{
		{Role: "system", Text: "be kind"},
		{Role: "user", Text: "a", Images: []session.Image{{Bytes: 3}}},
		{Role: "assistant", Text: "b", Reasoning: "hm", Calls: []session.Call{{ID: "A", Name: "ls", Arguments: `{"p":1}`}}},
		{Role: "tool", Text: "c", Result: "A"},
		{Role: "user", Text: "d\ne"},
	}
	for i := range r.Messages {
		got, err := d.Read(r.Messages[i].Raw)
		if err != nil || !reflect.DeepEqual(got, want[i]) {
			t.Errorf("message %d: got %+v (%v), want %+v", i, got, err, want[i])
		}
	}
	for _, raw := range []string{``, `{`, `{"type":"text"},`, `{"role":5}`} {
		if _, err := d.Read([]byte(raw)); err == nil {
			t.Errorf("%q was read", raw)
		}
	}
}

func TestRewriteAndStrip(t *testing.T) {
	d := messages.New(split.Options{})
	f := func(do func([]byte) ([]byte, error), raw, want string) {
		t.Helper()
		if got, err := do([]byte(raw)); err != nil || string(got) != want {
			t.Errorf("%s\ngot %s (%v)\nwant %s", raw, got, err, want)
		}
	}
	cut := func(raw []byte) ([]byte, error) { return d.Rewrite(raw, "cut") }
	f(cut, `{"type":"tool_result","tool_use_id":"A","content":[{"type":"text","text":"x"}],"is_error":true}`,
		`{"type":"tool_result","tool_use_id":"A","content":"cut","is_error":true}`)
	f(cut, `{"type":"tool_result","tool_use_id":"A"}`, `{"type":"tool_result","tool_use_id":"A","content":"cut"}`)
	f(cut, `{"role":"user","content":"x"}`, `{"role":"user","content":"cut"}`)
	f(cut, `{"type":"text","text":"a"},{"type":"text","text":"b"}`, `{"type":"text","text":"cut"}`)
	f(d.StripReasoning, `{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"a"}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"a"}]}`)
	f(d.StripReasoning, `{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"(no text)"}]}`)
	f(d.StripReasoning, `{"role":"assistant","content": "a" }`, `{"role":"assistant","content": "a" }`)
	for _, same := range []string{ // in a result, thinking is not the model's
		`{"type":"tool_result","tool_use_id":"A","content":[{"type":"thinking","thinking":"t"}]}`, `{"type":"thinking","thinking":"t"}`,
	} {
		f(d.StripReasoning, same, same)
	}
}

// drawElements returns a random conversation as agents send it.
func drawElements(t *rapid.T) []string {
	out := []string{`{"role":"user","content":"what the person wants to have done"}`}
	for step := range rapid.IntRange(0, 8).Draw(t, "steps") {
		calls := rapid.IntRange(0, 3).Draw(t, "calls")
		said, results := []string{fmt.Sprintf(`{"type":"text","text":"step %d of the run"}`, step)}, []string{}
		if rapid.Bool().Draw(t, "thinking") {
			said = append([]string{`{"type":"thinking","thinking":"","signature":"c2ln"}`}, said...)
		}
		for c := range calls {
			said = append(said, fmt.Sprintf(`{"type":"tool_use","id":"t%d_%d","name":"ls","input":{"a":%d}}`, step, c, c))
			results = append(results, fmt.Sprintf(`{"tool_use_id":"t%d_%d","type":"tool_result","content":"the result %d"}`, step, c, c))
		}
		for range rapid.IntRange(min(1, max(0, 1-calls)), 2).Draw(t, "texts") {
			results = append(results, `{"type":"text","text":"and a reminder"}`)
		}
		out = append(out, `{"role":"assistant","content":[`+strings.Join(said, ",")+`]}`, `{"role":"user","content":[`+strings.Join(results, " , ")+`]}`)
	}
	return out
}

func bodyOf(elements []string) []byte {
	return []byte(`{"padding":"` + strings.Repeat("p", 33<<10) + `","system":"s","messages":[` + strings.Join(elements, ",") + `],"model":"m"}`)
}

// TestJoinIsEquivalent checks that a body joined from its own messages is equivalent, and that a composed body splits into the
// same messages.
func TestJoinIsEquivalent(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		dialecttest.JoinIsEquivalent(t, messages.New(split.Options{}), bodyOf(drawElements(t)))
	})
}

// TestJoinKnowsElements joins elements with other members before the role.
func TestJoinKnowsElements(t *testing.T) {
	body := `{"messages":[{"role":"user","content":"a"},{"id":"m","type":"message","role":"assistant","content":"b"}]}`
	r := splitOf(t, body)
	joined := messages.New(split.Options{}).Join(r, [][]byte{r.Messages[0].Raw, r.Messages[1].Raw})
	if got := string(slices.Concat(joined...)); got != body {
		t.Errorf("got %s", got)
	}
}

// TestMemoryChangesNothing checks that dialects with and without a memory return the same.
func TestMemoryChangesNothing(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		d, elements := messages.New(split.Options{Remember: 1 << 20}), drawElements(t)
		for n := 1; n <= len(elements); n += rapid.IntRange(1, 3).Draw(t, "more") {
			body := bodyOf(elements[:n])
			want := splitOf(t, string(body))
			mine := bytes.Clone(body)
			got, err := d.Split("", mine)
			if err != nil || !reflect.DeepEqual(got.Messages, want.Messages) || got.ListSpan != want.ListSpan || got.Model != want.Model {
				t.Fatalf("got %+v (%v)\nwant %+v", got, err, want)
			}
			for i := range mine { // as if the buffer were reused
				mine[i] = 'x'
			}
		}
	})
}

// TestTeeJoinsBlocks: the text of an answer is the one that Read returns when the client sends the answer back.
func TestTeeJoinsBlocks(t *testing.T) {
	d := messages.New(split.Options{})
	const body = `{"role":"assistant","content":[{"type":"text","text":"one"},{"type":"tool_use","id":"A","name":"ls","input":{}},{"type":"text","text":"two"}]}`
	tee := d.Tee(false)
	tee.Write([]byte(body))
	history, err := d.Split("", []byte(`{"model":"m","messages":[`+body+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	content, err := d.Read(history.Messages[0].Raw)
	if got := tee.Answer().Text; err != nil || got != "one\ntwo" || got != content.Text {
		t.Errorf("%q, %q, %v", got, content.Text, err)
	}
}

func TestTee(t *testing.T) {
	d := messages.New(split.Options{})
	stream := `event: message_start
data: {"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":90,"cache_creation_input_tokens":5,"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":3},"output_tokens":1}}}

data: {"type":"ping"}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"let me look"}}

data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"A","name":"ls","input":{}}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"p\":"}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":20}}

`
	whole := `{"type":"message","content":[{"type":"text","text":"let me look"},{"type":"tool_use","id":"A","name":"ls","input":{"p":1}}],
		"stop_reason":"tool_use","usage":{"input_tokens":5,"cache_read_input_tokens":90,"cache_creation_input_tokens":5,"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":3},"output_tokens":20}}`
	want := dialect.Answer{
		Text: "let me look", Wrote: 18, Finish: "tool_use", Calls: []session.Call{{ID: "A", Name: "ls", Arguments: `{"p":1}`}},
		Usage: &session.Usage{Input: 100, Cached: 90, Output: 20, Written: 5, WrittenLong: 3},
	}
	for _, streamed := range []bool{true, false} {
		tee, text, end := d.Tee(streamed), whole[:len(whole)-1], "}"
		if streamed {
			// The end mark of other APIs does not count: the answer may have been cut off before it.
			text, end = stream+"data: [DONE]\n\n", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
		}
		for i := range text {
			tee.Write([]byte{text[i]})
		}
		if tee.Ended() {
			t.Errorf("streamed %t: ended before its end", streamed)
		}
		tee.Write([]byte(end))
		want.Garbled = streamed
		if got := tee.Answer(); !tee.Ended() || !reflect.DeepEqual(got, want) {
			t.Errorf("streamed %t: got %+v, want %+v", streamed, got, want)
		}
	}
}

// TestOutputOfABrokenStreamIsEstimated: a stream reports only few output tokens at its start. If it breaks, the output is estimated from what arrived.
func TestOutputOfABrokenStreamIsEstimated(t *testing.T) {
	tee := messages.New(split.Options{}).Tee(true)
	tee.Write([]byte(`data: {"type":"message_start","message":{"id":"msg","usage":{"input_tokens":5,"output_tokens":1}}}` + "\n\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + strings.Repeat("x", 400) + `"}}` + "\n\n"))
	if got := tee.Answer().Usage; got == nil || *got != (session.Usage{Input: 5, Output: 100}) {
		t.Errorf("%+v", got)
	}
}

// TestTooLongAnswerIsNotLogged: if an answer is too long to be read completely, no part of it is logged.
func TestTooLongAnswerIsNotLogged(t *testing.T) {
	for more, whole := range map[string]bool{"": true, "x": false} {
		tee := messages.New(split.Options{}).Tee(false)
		tee.Write([]byte(`{"id":"msg","content":[{"type":"text","text":"` + strings.Repeat("x", split.MaxText) + more + `"}],"stop_reason":"end_turn"}`))
		if said := tee.Answer().Said; (said != nil) != whole {
			t.Errorf("%d bytes are kept", len(said))
		}
	}
}

func TestMerge(t *testing.T) {
	d := messages.New(split.Options{})
	f := func(first, second, want string) {
		t.Helper()
		if got, err := d.Merge([]byte(first), []byte(second)); err != nil || string(got) != want {
			t.Errorf("got %s (%v), want %s", got, err, want)
		}
	}
	f(`{"role":"user","content":"a"}`, string(d.Note("b")), `{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`)
	f(`{"type":"text","text":"a"},{"type":"text","text":"b"}`, string(d.Note("c")),
		`{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"text","text":"c"}`)
	f(`{"role":"user","content":[{"type":"text","text":"a"}]}`, `{"type":"tool_result","tool_use_id":"A"}`,
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"A"}]}`)
	if _, err := d.Merge([]byte("{"), d.Note("b")); err == nil {
		t.Error("what is no message was merged")
	}
}

// TestEvent checks that an error in another server's format gets the type that clients look for.
func TestEvent(t *testing.T) {
	d := messages.New(split.Options{})
	own := `{"type":"error","error":{"type":"api_error","message":"m"}}`
	for failure, want := range map[string]string{
		own:                         own,
		`{"error":{"message":"m"}}`: `{"type":"error","error":{"message":"m"}}`,
		`{"error":{"type":"overloaded_error"},"request_id":"r"}`: `{"type":"error","error":{"type":"overloaded_error"},"request_id":"r"}`,
	} {
		if got := string(d.Event([]byte(failure))); got != "event: error\ndata: "+want+"\n\n" {
			t.Errorf("%s: got %s", failure, got)
		}
	}
}

// TestToolReferencesLast: messages that load tools must not be hidden, and notes are distinguished from other system messages.
func TestToolReferencesLast(t *testing.T) {
	r := splitOf(t, `{"messages":[{"role":"user","content":[
		{"type":"tool_result","tool_use_id":"A","content":[{"type":"tool_reference","tool_name":"n"}]},{"type":"text","text":"Tool loaded."},
		{"type":"tool_result","tool_use_id":"B","content":[{"type":"text","text":"a tool_reference"}]}]},
		{"role":"assistant","content":[{"type":"server_tool_use","id":"S","name":"tool_search","input":{}},{"type":"tool_search_tool_result","tool_use_id":"S","content":{}}]},
		{"role":"system","content":"<total_tokens>5 tokens left</total_tokens>"},{"role":"system","content":"Mind <total_tokens>."}]}`)
	var got []string
	for i := range r.Messages {
		got = append(got, fmt.Sprintf("%t %t %d", r.Messages[i].Lasts, session.NewHistory(session.Hash{}, r.Messages).IsNotice(i), r.Messages[i].Note))
	}
	if want := []string{"true false 0", "false true 0", "false false 0", "true false 0", "false false 1", "false false 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
