package responses_test

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
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/test/lineartest"
	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
	"github.com/dewpoint-proxy/dewpoint/session"
)

func splitOf(t dialecttest.TB, body string) *dialect.Request {
	return dialecttest.Split(t, responses.New(split.Options{}), body)
}

func listOf(items string) string { return `{"input":[` + items + `]}` }

func TestSplit(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		if got := dialecttest.InShort(splitOf(t, body).Messages); got != want {
			t.Errorf("%s\ngot %s, want %s", body, got, want)
		}
	}
	const (
		thought = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},`
		callA   = `{"type":"function_call","id":"fc_A","call_id":"A","name":"ls","arguments":"{}"}`
		callB   = `{"type":"custom_tool_call","id":"fc_B","call_id":"B","name":"ls","input":"x"}`
		gaveA   = `{"type":"function_call_output","call_id":"A","output":"a"}`
		gaveB   = `{"type":"custom_tool_call_output","call_id":"B","output":"b"}`
	)
	f(`{"input":"do it"}`, "user")
	f(`{"instructions":"be kind","input":"do it"}`, "system user")
	f(`{"input":{"role":"user","content":"do it"},"model":"m"}`, "user")
	f(`{"model":"m","instructions":"be kind","input": {"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}}`, "system user")
	f(`{"input":`+strings.TrimSuffix(thought, ",")+`}`, "agent")
	f(`{"input":[{"role":"developer","content":"s"},{"role":"user","content":"a"}],"instructions":""}`, "system user")
	f(listOf(`{"type":"message","role":"user","content":"a"},`+thought+callA+`,`+callB+`,`+gaveA+`,`+gaveB), "user actionA+B observationA observationB")
	f(listOf(thought+`{"role":"assistant","content":[{"type":"output_text","text":"b"}]},`+callA+`,`+gaveA+`,{"role":"user","content":"c"}`), "actionA observationA user")
	f(listOf(thought+callA+`,`+gaveA+`,`+callB+`,`+gaveB+`,{"role":"user","content":"c"},`+callA), "actionA observationA actionB! observationB user actionA")
	f(listOf(thought+callA+`,`+gaveA+`,{"type":"function_call","call_id":"B","name":"ls","arguments":"{}"}`), "actionA observationA actionB")
	f(listOf(`{"type":"reasoning","summary":[],"format":"anthropic-claude-v1","signature":"s"},`+callA), "actionA!")
	f(listOf(thought+`{"role":"assistant","content":"a"},{"role":"assistant","content":"b"},`+thought+`{"role":"assistant","content":"c"},`+callA), "agent agent actionA")
	f(listOf(`{"type":"web_search_call","id":"ws_1","status":"completed"},{"role":"assistant","content":"found"},{"type":"shiny","x":1},{"role":"user","content":"c"}`), "agent system user")
	f(listOf(`{"type":"local_shell_call","call_id":"A","action":{"command":["ls"]}},{"type":"local_shell_call_output","id":"A","output":"a"}`), "actionA observationA")
	f(listOf(`{"type":"mcp_approval_request","id":"A","name":"x","arguments":"{}"},{"type":"mcp_approval_response","approval_request_id":"A","approve":true}`), "actionA observationA")
	f(listOf(`{"role":"user","content":"a"},{"type":"compaction","encrypted_content":"x"},{"role":"user","content":"b"}`), "user system user")
	f(listOf(`{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"type":"compaction_trigger"}`), "user agent system")
}

func TestSplitRefuses(t *testing.T) {
	f := func(body, code, param string) {
		t.Helper()
		_, err := responses.New(split.Options{}).Split("", []byte(body))
		e, ok := errors.AsType[*dialect.Error](err)
		if !ok || e.Code != code || e.Param != param {
			t.Errorf("%s\ngot %v, want %s %s", body, err, code, param)
		}
	}
	f(`{"input":[{"role":"user","content":"a","content":"b"}]}`, dialect.CodeDuplicateKey, "input[0].content")
	f(`{"input":[{"role":"user","content":[{"type":"input_text","text":"a","text":"b"}]}]}`, dialect.CodeDuplicateKey, "input[0].content[].text")
	f(`{"input":[{"role":"assistant","content":[{"type":"output_text","text":"a","text":"b"}]}]}`, dialect.CodeDuplicateKey, "content[].text")
	f(`{"input":[],"input":[]}`, dialect.CodeDuplicateKey, "input")
	f(`{"input":"a","input":"b"}`, dialect.CodeDuplicateKey, "input")
	f(`{"input":[{"role":"user","cont\u0065nt":"a"}]}`, dialect.CodeEscapedKey, "input[0].content")
	f(`{"input":[{"type":"function_call","Call_ID":"a"}]}`, dialect.CodeDuplicateKey, "input[0].Call_ID")
	f(`{"input":"a","previous_response_id":"r","previous_response_id":"s"}`, dialect.CodeDuplicateKey, "previous_response_id")
	f(`{"input":[{"role":"tool","content":"a"}]}`, dialect.CodeUnsupported, "input")
	f(`{"input":[]}`, dialect.CodeUnsupported, "input")
	f(`{"input":{}}`, dialect.CodeUnsupported, "input")
	f(`{"input":[5]}`, dialect.CodeUnsupported, "input")
	f(`{"model":"m"}`, dialect.CodeUnsupported, "input")
	f(`{"input":[`, dialect.CodeInvalidJSON, "")
}

func TestRequest(t *testing.T) {
	r := splitOf(t, `{"model":"m","stream":true,"max_output_tokens":7,"tools":[{"name":"a"}],"previous_response_id":null,"input":"a"}`)
	if r.Model != "m" || !r.Stream || r.MaxOutput != 7 || string(r.Tools) != `[{"name":"a"}]` || r.NeedsReasoning {
		t.Errorf("got %+v", r)
	}
}

// TestDigest checks that ids, states and reasoning do not count, since clients change them, and that all else does.
func TestDigest(t *testing.T) {
	digest := func(items string) session.Hash {
		all := splitOf(t, listOf(items)).Messages
		return all[len(all)-1].Digest
	}
	same := func(all ...string) {
		t.Helper()
		for _, items := range all[1:] {
			if digest(items) != digest(all[0]) {
				t.Errorf("%s\ndiffers from %s", items, all[0])
			}
		}
	}
	same(`{"role":"user","content":"a"}`, `{"content":[{"text":"a","type":"input_text"}],"type":"message","role":"user","id":"msg_1"}`)
	if digest(`{"role":"user","content":"a"}`) != splitOf(t, `{"input":"a"}`).Messages[0].Digest {
		t.Error("a history that is a text differs from a list of it")
	}
	same(`{"role":"assistant","content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[]}]},{"type":"function_call","call_id":"A","name":"n","arguments":"{\"a\":1,\"b\":2}"}`,
		`{"type":"reasoning","id":"rs","summary":[]},{"type":"message","id":"m","status":"completed","role":"assistant","content":[{"type":"output_text","text":"a"}]},
		 {"type":"function_call","id":"fc","status":"completed","call_id":"A","name":"n","arguments":"{\"b\":2,\"a\":1}"}`)
	same(`{"type":"function_call_output","call_id":"A","output":"x"}`, `{"type":"function_call_output","id":"fco","call_id":"A","output":[{"type":"input_text","text":"x"}]}`)
	same(`{"type":"shiny","a":1,"b":2}`, `{"type":"shiny","id":"s","status":"done","b":2,"a":1}`)
	different := []string{
		`{"role":"user","content":"a"}`, `{"role":"user","content":"b"}`, `{"role":"assistant","content":"a"}`,
		`{"role":"assistant","content":"a"},{"type":"web_search_call","id":"w"},{"role":"assistant","content":"a"}`,
		`{"type":"function_call_output","call_id":"A","output":"a"}`, `{"type":"function_call_output","call_id":"B","output":"a"}`,
		`{"type":"custom_tool_call_output","call_id":"A","output":"a"}`,
		`{"type":"function_call","call_id":"A","name":"n","arguments":"{}"}`, `{"type":"function_call","call_id":"A","name":"n","arguments":"{\"a\":1}"}`,
		`{"type":"custom_tool_call","call_id":"A","name":"n","input":"{}"}`, `{"type":"function_call","call_id":"A","name":"n","namespace":"s","arguments":"{}"}`,
		`{"type":"shiny","a":1}`, `{"type":"shiny","a":2}`, `{"type":"item_reference","id":"a"}`, `{"type":"item_reference","id":"b"}`,
		`{"type":"compaction","encrypted_content":"a"}`, `{"type":"compaction","encrypted_content":"b"}`,
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
	r := splitOf(t, `{"instructions":"be kind","input":[{"role":"user","content":[{"type":"input_text","text":"a"},
		{"type":"input_image","detail":"low","image_url":"data:image/png;base64,AAAA"},{"type":"input_file","filename":"c.pdf","file_id":"f"}]},
		{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"content":[{"type":"reasoning_text","text":"well"}]},
		{"role":"assistant","content":[{"type":"output_text","text":"b"},{"type":"refusal","refusal":"no"}]},
		{"type":"function_call","call_id":"A","name":"ls","arguments":"{\"p\":1}"},{"type":"local_shell_call","call_id":"B","action":{"command":["ls"]}},
		{"type":"web_search_call","id":"w"},
		{"type":"function_call_output","call_id":"A","output":[{"type":"input_text","text":"c"}]},
		{"type":"shell_call_output","call_id":"B","output":[{"stdout":"d","stderr":"e","outcome":{}}]},
		{"type":"compaction","encrypted_content":"x"}]}`)
	want := []session.Content{
		{Role: "system", Text: "be kind"},
		{
			Role: "user", Text: "a", Images: []session.Image{{Bytes: 3, Detail: "low"}},
			Files: []session.File{{Kind: "file", Name: "c.pdf", ID: "f"}},
		},
		{
			Role: "assistant", Text: "b\nno", Reasoning: "hm\nwell",
			Calls: []session.Call{{ID: "A", Name: "ls", Arguments: `{"p":1}`}, {ID: "B", Name: "local_shell", Arguments: `{"command":["ls"]}`}},
			Files: []session.File{{Kind: "web_search_call", Bytes: 35, Format: "json"}},
		},
		{Role: "tool", Text: "c", Result: "A"},
		{Role: "tool", Text: "de", Result: "B"},
		{Role: "system", Files: []session.File{{Kind: "compaction", ID: split.CompactionID("x"), Bytes: 45, Format: "json"}}},
	}
	for i := range r.Messages {
		got, err := responses.New(split.Options{}).Read(r.Messages[i].Raw)
		if err != nil || !reflect.DeepEqual(got, want[i]) {
			t.Errorf("message %d: got %+v (%v)\nwant %+v", i, got, err, want[i])
		}
	}
	for _, raw := range []string{``, `{`, `{"type":"x"},`, `{"role":5}`, `5`, `"`} {
		if _, err := responses.New(split.Options{}).Read([]byte(raw)); err == nil {
			t.Errorf("%q was read", raw)
		}
	}
}

func TestRewriteAndStrip(t *testing.T) {
	d := responses.New(split.Options{})
	f := func(do func([]byte) ([]byte, error), raw, want string) {
		t.Helper()
		if got, err := do([]byte(raw)); err != nil && want != "" || string(got) != want {
			t.Errorf("%s\ngot %s (%v)\nwant %s", raw, got, err, want)
		}
	}
	cut := func(raw []byte) ([]byte, error) { return d.Rewrite(raw, "cut") }
	f(cut, `{"type":"function_call_output","call_id":"A","output":[{"type":"input_text","text":"x"}],"id":"o"}`,
		`{"type":"function_call_output","call_id":"A","output":"cut","id":"o"}`)
	f(cut, `{"role":"user","content":"x"}`, `{"role":"user","content":"cut"}`)
	f(cut, `{"type":"shell_call_output","call_id":"A","output":[{"stdout":"x"}]}`,
		`{"type":"shell_call_output","call_id":"A","output":[{"stdout":"cut","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`)
	f(cut, `{"type":"computer_call_output","call_id":"A","output":{"type":"computer_screenshot","image_url":"u"}}`, "")
	f(cut, `{"type":"function_call","call_id":"A"}`, "")
	f(cut, `{"role":"user","content":"x"},{"role":"user","content":"y"}`, "")
	f(d.StripReasoning, `{"type":"reasoning","id":"rs","format":"anthropic-claude-v1","signature":"s"},{"id":"m","role":"assistant","content":"a"}`,
		`{"role":"assistant","content":"a"}`)
	f(d.StripReasoning, `{"type":"reasoning","signature":"s"},{"type":"item_reference","id":"r"},{"type":"mcp_approval_request","id":"q"},{"type":"x_call","id":"x"}`,
		`{"type":"item_reference","id":"r"},{"type":"mcp_approval_request","id":"q"},{"type":"x_call"}`) // two of these ids are content
	f(d.StripReasoning, `{"type":"reasoning","format":"anthropic-claude-v1","signature":"s"}`, string(d.Reply("(no text)")))
	f(d.StripReasoning, `{"type":"function_call","id":"fc","call_id":"A", "name":"n"}`, `{"type":"function_call","call_id":"A","name":"n"}`)
	f(d.StripReasoning, `{"type":"reasoning","id":"rs","encrypted_content":"x"}, {"type":"function_call","id":"fc","call_id":"A"}`,
		`{"type":"reasoning","id":"rs","encrypted_content":"x"}, {"type":"function_call","id":"fc","call_id":"A"}`)
}

func TestMerge(t *testing.T) {
	d := responses.New(split.Options{})
	got, err := d.Merge([]byte(`{"role":"user","content":"a"}`), d.Note("b"))
	if want := `{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]}`; err != nil || string(got) != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
	if _, err := d.Merge([]byte(`{"type":"function_call_output","output":"x"}`), d.Note("b")); err == nil {
		t.Error("a result was merged")
	}
}

// drawItems returns a random conversation as agents send it.
func drawItems(t *rapid.T) []string {
	out := []string{`{"role":"user","content":"what the person wants to have done"}`}
	for step := range rapid.IntRange(0, 8).Draw(t, "steps") {
		if rapid.Bool().Draw(t, "reasoning") {
			out = append(out, fmt.Sprintf(`{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":"c2VhbGVk"}`, step))
		}
		if rapid.Bool().Draw(t, "text") {
			out = append(out, fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"step %d of the run"}]}`, step))
		}
		calls := rapid.IntRange(0, 3).Draw(t, "calls")
		for c := range calls {
			out = append(out, fmt.Sprintf(`{"type":"function_call","id":"fc_%d_%d","call_id":"t%d_%d","name":"ls","arguments":"{}"}`, step, c, step, c))
		}
		for c := range calls {
			out = append(out, fmt.Sprintf(`{"type":"function_call_output","call_id":"t%d_%d","output":"the result %d"}`, step, c, c))
		}
		if calls == 0 || rapid.Bool().Draw(t, "typed") {
			out = append(out, `{"role":"user","content":"and a reminder of what is wanted"}`)
		}
	}
	return out
}

func bodyOf(items []string) []byte {
	return []byte(`{"padding":"` + strings.Repeat("p", 33<<10) + `","instructions":"s","input":[` + strings.Join(items, " ,") + `],"model":"m"}`)
}

// TestJoinIsEquivalent checks that a body joined from its own messages is equivalent, and that a composed body splits into the
// same messages.
func TestJoinIsEquivalent(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		dialecttest.JoinIsEquivalent(t, responses.New(split.Options{}), bodyOf(drawItems(t)))
	})
}

// TestJoinWithoutList: a history that is a string or a single item stays so if its message is the only one and unchanged.
func TestJoinWithoutList(t *testing.T) {
	for _, input := range []string{`"do \"it\""`, `{"role":"user", "content":"do it"}`, `[{"role":"user", "content":"do it"}]`} {
		d, body := responses.New(split.Options{Remember: 1 << 20}), `{"instructions":"s","input": `+input+` ,"model":"m"}`
		r := splitOf(t, body)
		raws := [][]byte{r.Messages[0].Raw, r.Messages[1].Raw}
		if got := string(slices.Concat(d.Join(r, raws)...)); got != body {
			t.Errorf("got %s", got)
		}
		want := `{"instructions":"s","input": [` + string(raws[1]) + "," + string(d.Note("b")) + `] ,"model":"m"}`
		if got := string(slices.Concat(d.Join(r, append(raws, d.Note("b")))...)); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

// TestLongItemWithoutList: what is remembered of bodies whose history is a single item harms no other body.
func TestLongItemWithoutList(t *testing.T) {
	d := responses.New(split.Options{Remember: 1 << 20})
	body := `{"model":"m","input":{"role":"user","content":"` + strings.Repeat("long ", 5000) + `"}}`
	for range 3 {
		r, err := d.Split("", []byte(body))
		if err != nil || dialecttest.InShort(r.Messages) != "user" || d.Known([]byte(body)) != 0 {
			t.Fatalf("%v, %s", err, dialecttest.InShort(r.Messages))
		}
	}
}

// TestMemoryChangesNothing checks that dialects with and without a memory return the same, also for bodies that end within a
// turn.
func TestMemoryChangesNothing(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		d, items := responses.New(split.Options{Remember: 1 << 20}), drawItems(t)
		for n := 1; n <= len(items); n += rapid.IntRange(1, 3).Draw(t, "more") {
			body := bodyOf(items[:n])
			want := splitOf(t, string(body))
			mine := bytes.Clone(body)
			got, err := d.Split("", mine)
			if err != nil || dialecttest.InShort(got.Messages) != dialecttest.InShort(want.Messages) || got.ListSpan != want.ListSpan || got.Model != want.Model {
				t.Fatalf("got %+v (%v)\nwant %+v", got, err, want)
			}
			for i := range want.Messages {
				if g, w := got.Messages[i], want.Messages[i]; !bytes.Equal(g.Raw, w.Raw) || g.Digest != w.Digest {
					t.Fatalf("message %d: got %s, want %s", i, g.Raw, w.Raw)
				}
			}
			if n > 4 && len(body) > 2048 && d.Known(body) == 0 {
				t.Fatalf("nothing of %s is remembered", body)
			}
			for i := range mine { // as if the buffer were reused
				mine[i] = 'x'
			}
		}
	})
}

// TestLongTurn checks that the time to read a long turn with calls is linear in its length.
func TestLongTurn(t *testing.T) {
	d := responses.New(split.Options{})
	body := func(n int) string {
		return `{"input":[` + strings.Repeat(`{"type":"x_call"},`, n) + `{"type":"x_call","call_id":"a"}` +
			strings.Repeat(`,{"type":"message","role":"assistant"},{"type":"reasoning"}`, n/2) + `]}`
	}
	lineartest.Compare(t, func(text string) {
		if r, err := d.Split("", []byte(text)); err != nil || len(r.Messages) != 1 {
			t.Fatal(r, err)
		}
	}, body(1000), body(8000), 40)
}

// TestNoTurnIsLostBetweenBodies checks that no turn is lost if two turns follow one another and later bodies continue differently.
func TestNoTurnIsLostBetweenBodies(t *testing.T) {
	d := responses.New(split.Options{Remember: 1 << 20})
	for _, last := range []string{"one thing, to begin with", "quite another thing, instead"} {
		body := string(bodyOf([]string{
			`{"role":"user","content":"go"}`, `{"role":"assistant","content":"the first thing that it says"}`,
			`{"role":"assistant","content":"the second thing that it says"}`, `{"role":"user","content":"` + last + `"}`,
		}))
		got, err := d.Split("", []byte(body))
		if want := splitOf(t, body); err != nil || dialecttest.InShort(got.Messages) != dialecttest.InShort(want.Messages) {
			t.Errorf("got %s (%v)\nwant %s", dialecttest.InShort(got.Messages), err, dialecttest.InShort(want.Messages))
		}
	}
}

func TestTee(t *testing.T) {
	d := responses.New(split.Options{})
	const (
		output = `{"type":"reasoning","id":"rs","summary":[]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"let me look"}]},
			{"type":"function_call","id":"fc","call_id":"A","name":"ls","arguments":"{\"p\":1}"}`
		usage = `"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":90,"cache_write_tokens":8},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":5}}`
	)
	stream := `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"status":"in_progress","output":[],"usage":null}}

event: response.output_item.done
data: {"type":"response.output_item.done","item":{"type":"reasoning","id":"rs","summary":[]}}

data: {"type":"response.output_text.delta","delta":"let"}

data: {"type":"response.output_item.done","item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"let me look"}]}}

data: {"type":"response.output_item.done","item":{"type":"function_call","id":"fc","call_id":"A","name":"ls","arguments":"{\"p\":1}"}}

`
	whole := `{"id":"resp","status":"completed","incomplete_details":null,"output":[` + output + `],` + usage + `}`
	last := strings.ReplaceAll(`data: {"type":"response.completed","response":`+whole+"}\n\n", "\n\t", "")
	want := dialect.Answer{
		Text: "let me look", Wrote: 18, Finish: "completed", Calls: []session.Call{{ID: "A", Name: "ls", Arguments: `{"p":1}`}},
		Usage: &session.Usage{Input: 100, Cached: 90, Written: 8, Output: 20}, ID: "resp", Said: []byte(strings.ReplaceAll(output, "\n\t\t\t", "")), Whole: true,
	}
	for name, pieces := range map[string][2]string{"whole": {whole[:len(whole)-1], "}"}, "stream": {stream, last}, "last event alone": {"\n", last}} {
		tee := d.Tee(name != "whole")
		for i := range pieces[0] {
			tee.Write([]byte{pieces[0][i]})
		}
		if tee.Ended() {
			t.Errorf("%s: ended before its end", name)
		}
		tee.Write([]byte(pieces[1]))
		if got := tee.Answer(); !tee.Ended() || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	for event, finish := range map[string]string{
		`{"type":"error","message":"m"}`: "", `[DONE]`: "", `{"type":"response.failed","response":{"status":"failed"}}`: "failed",
		`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`: "max_output_tokens",
	} {
		tee := d.Tee(true)
		tee.Write([]byte("data: " + event + "\n\n"))
		if !tee.Ended() || tee.Answer().Finish != finish {
			t.Errorf("%s: ended %t, %q", event, tee.Ended(), tee.Answer().Finish)
		}
	}
}

// TestTeeOfIncompleteAnswers: the part of an incomplete item that arrived counts as written, and an answer that is too long to be read is not
// logged.
func TestTeeOfIncompleteAnswers(t *testing.T) {
	d := responses.New(split.Options{})
	tee := d.Tee(true)
	tee.Write([]byte(`data: {"type":"response.reasoning_text.delta","delta":"` + strings.Repeat("x", 400) + `"}` + "\n\n"))
	if got := tee.Answer().Wrote; got != 400 {
		t.Errorf("%d bytes were written", got)
	}
	item := func(n int) string {
		return `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + strings.Repeat("x", n) + `"}]}`
	}
	most := split.MaxText - len(item(0))
	for n, whole := range map[int]bool{most: true, most + 1: false} {
		tee := d.Tee(false)
		tee.Write([]byte(`{"id":"r","status":"completed","output":[` + item(n) + `]}`))
		if said := tee.Answer().Said; (said != nil) != whole {
			t.Errorf("of %d bytes %d are kept", len(item(n)), len(said))
		}
	}
	for response, failed := range map[string]bool{
		`{"status":"failed","error":{"code":"server_error","message":"m"}}`: true, `{"status":"completed","error":null}`: false,
	} {
		tee := d.Tee(false)
		tee.Write([]byte(response))
		if got := tee.Answer(); got.Failed != failed {
			t.Errorf("%s failed: %t", response, got.Failed)
		}
	}
}

func TestFailure(t *testing.T) {
	d := responses.New(split.Options{})
	failure := d.Failure(dialect.Failure{Status: 400, Type: "invalid_request_error", Code: "c", Message: "m"})
	if want := `{"error":{"message":"m","type":"invalid_request_error","param":null,"code":"c"}}`; string(failure) != want {
		t.Errorf("got %s", failure)
	}
	want := "event: error\ndata: {\"type\":\"error\",\"sequence_number\":0,\"message\":\"m\",\"param\":null,\"code\":\"c\"}\n\n"
	if got := string(d.Event(failure)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestLongIDsAreCut: an id that a client invents takes no more memory than the longest real one.
func TestLongIDsAreCut(t *testing.T) {
	r, err := responses.New(split.Options{}).Split("", []byte(`{"previous_response_id":"`+strings.Repeat("x", 2*split.MaxField)+`","input":"a"}`))
	if err != nil || len(r.Kept.Answer) != split.MaxField {
		t.Errorf("%d bytes, %v", len(r.Kept.Answer), err)
	}
}

func TestKept(t *testing.T) {
	for body, want := range map[string]session.Kept{
		`{"input":"a"}`: {},
		`{"input":"a","previous_response_id":null,"conversation":null}`:       {},
		`{"previous_response_id":"r","input":"a"}`:                            {Answer: "r"},
		`{"input":"a","conversation":"c"}`:                                    {Conversation: "c"},
		`{"input":[{"role":"user","content":"a"}],"conversation":{"id":"c"}}`: {Conversation: "c"},
	} {
		if r := splitOf(t, body); r.Kept != want || !r.Stores || len(r.Messages) != 1 {
			t.Errorf("%s: %+v, %d messages", body, r.Kept, len(r.Messages))
		}
	}
	for body, want := range map[string]session.Kept{
		`{"model":"m","previous_response_id":"r"}`: {Answer: "r"},
		`{"input":[],"conversation":"c"}`:          {Conversation: "c"},
	} {
		if r := splitOf(t, body); r.Kept != want || len(r.Messages) > 0 {
			t.Errorf("%s: %+v, %d messages", body, r.Kept, len(r.Messages))
		}
	}
	if splitOf(t, `{"input":"a","store":false}`).Stores {
		t.Error("it is stored")
	}
}

// TestForms checks that messages without a type, reasoning as <think> text and references to stored items are read like other items, and
// stay with their turn after a condensation.
func TestForms(t *testing.T) {
	d := responses.New(split.Options{})
	for _, turn := range []string{
		`{"role":"assistant","content":"<think>hm</think>Let me look."},{"type":"function_call","call_id":"A","name":"ls","arguments":"{}"}`,
		`{"type":"item_reference","id":"rs_1"},{"type":"item_reference","id":"fc_1"}`,
	} {
		r := splitOf(t, `{"input":[{"role":"user","content":"a"},`+turn+`,{"type":"function_call_output","call_id":"A","output":"b"}]}`)
		if len(r.Messages) != 3 || string(r.Messages[1].Raw) != turn || r.Messages[1].Sealed {
			t.Errorf("%s: split into %d: %s", turn, len(r.Messages), r.Messages[1].Raw)
		}
		if raw, err := d.StripReasoning(r.Messages[1].Raw); err != nil || string(raw) != turn {
			t.Errorf("%s: stripped to %s (%v)", turn, raw, err)
		}
	}
}

// TestRelayed: messages of another agent are distinguished from the user's.
func TestRelayed(t *testing.T) {
	for item, want := range map[string]string{
		`{"type":"message","role":"user","content":"a"}`:                                "user",
		`{"type":"agent_message","author":"/root/a","recipient":"/root","content":"a"}`: "tool",
	} {
		m := splitOf(t, listOf(item)).Messages[0]
		if c, err := responses.New(split.Options{}).Read(m.Raw); err != nil || c.Role != want || m.Relayed != (want == "tool") {
			t.Errorf("%s: role %q, relayed %t (%v)", item, c.Role, m.Relayed, err)
		}
	}
}
