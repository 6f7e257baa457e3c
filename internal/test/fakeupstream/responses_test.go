package fakeupstream_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// postResponses sends a body to the Responses API, and returns the status and the answer.
func postResponses(t *testing.T, s *fakeupstream.Server, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.URL()+"/v1"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// TestNamespace: a call of a tool in a namespace names it.
func TestNamespace(t *testing.T) {
	s := startResponses(t, fakeupstream.Options{})
	for name, want := range map[string]bool{"inner": true, "outer": false} {
		s.Script(fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{{ID: "c", Name: name, Arguments: "{}"}}})
		_, got := postResponses(t, s, "/responses", `{"model":"m","input":"go","tools":[{"type":"function","name":"outer"},
			{"type":"namespace","name":"space","tools":[{"type":"function","name":"inner"}]}]}`)
		var answer struct {
			Output []struct{ Name, Namespace string }
		}
		if err := json.Unmarshal([]byte(got), &answer); err != nil || len(answer.Output) != 1 || (answer.Output[0].Namespace == "space") != want {
			t.Errorf("%s: %v, %s", name, err, got)
		}
	}
}

func startResponses(t *testing.T, o fakeupstream.Options) *fakeupstream.Server {
	t.Helper()
	s := fakeupstream.New(o)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// TestResponsesRules: each input is refused with the API's message, or accepted if the case has no message.
func TestResponsesRules(t *testing.T) {
	s := startResponses(t, fakeupstream.Options{ContextWindow: 2000})
	f := func(items, want string) {
		t.Helper()
		status, answer := postResponses(t, s, "/responses", `{"model":"m","input":[`+items+`]}`)
		if want == "" && status != http.StatusOK || want != "" && (status < 400 || !strings.Contains(answer, want)) {
			t.Errorf("%.200s\n%d %s, want %q", items, status, answer, want)
		}
	}
	const asked, called = `{"role":"user","content":"go"}`, `,{"type":"function_call","id":"fc_1","call_id":"A","name":"n","arguments":"{}"}`
	const given = `,{"type":"function_call_output","call_id":"A","output":"x"}`
	f(asked, "")
	f(asked+called+given, "")
	f(asked+`,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},`+asked, "")
	f(`{"type":"additional_tools","role":"developer","tools":[]},{"type":"configuration_update","reasoning":{"effort":"high"}},`+asked, "")
	f(asked+`,{"type":"agent_message","author":"/root","recipient":"HOME","content":[]}`, "")
	f(asked+`,{"type":"tool_search_call","call_id":"S","arguments":{}},{"type":"tool_search_output","call_id":"S","tools":[]}`, "")
	f(asked+`,{"type":"tool_search_call","call_id":"S","arguments":{}}`, "No tool output found for function call S")
	f(`{"type":"additional_tools"}`, "input[0].tools")
	f(asked+called, "No tool output found for function call A")
	f(asked+given, "No tool call found for function call output with call_id A")
	f(asked+given+called, "No tool call found")
	f(asked+called+given+called+given, "Duplicate item found with id fc_1")
	f(`{"role":"user","content":[{"type":"text","text":"a"}]}`, "Supported values are: 'input_text'")
	f(`{"role":"assistant","content":[{"type":"input_text","text":"a"}]}`, "Supported values are: 'output_text'")
	f(`{"role":"tool","content":"a"}`, "input[0].role")
	f(`{"role":"user"}`, "input[0].content")
	f(`{"type":"shiny"}`, "Invalid value: 'shiny'")
	f(`{"type":"function_call","call_id":"A","name":"n"}`, "input[0].arguments")
	f(`{"type":"item_reference","id":"nobody"}`, "not found")
	f(`{"type":"compaction","encrypted_content":"forged"}`, "could not be verified")
	f(`{"type":"compaction_trigger"},`+asked, "must be the last item")
	f(`{"role":"user","content":"`+strings.Repeat("word ", 2000)+`"}`, "exceeds the context window")
	if status, answer := postResponses(t, s, "/responses", `{"model":"m","input":"go","previous_response_id":"resp_x"}`); status != 400 || !strings.Contains(answer, "previous_response_not_found") {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer := postResponses(t, s, "/responses/input_tokens", `{"model":"m","input":[`+asked+`]}`); status != 200 || !strings.Contains(answer, `"input_tokens":7`) {
		t.Errorf("%d %s", status, answer)
	}
}

// output returns the items of an answer as JSON, to be sent back.
func output(t *testing.T, answer string) string {
	t.Helper()
	var r struct{ Output []json.RawMessage }
	if err := json.Unmarshal([]byte(answer), &r); err != nil || len(r.Output) == 0 {
		t.Fatalf("%v: %s", err, answer)
	}
	var all []string
	for _, item := range r.Output {
		all = append(all, string(item))
	}
	return strings.Join(all, ",")
}

// TestResponsesReasoning: depending on the format, neither reasoning nor the item after it is accepted without the other, or reasoning is bound
// to everything before it.
func TestResponsesReasoning(t *testing.T) {
	for _, form := range []fakeupstream.Seal{fakeupstream.SealResponsesDetails, fakeupstream.SealClaudeDetails} {
		s := startResponses(t, fakeupstream.Options{Seals: form})
		s.Script(fakeupstream.Answer{Content: "done"})
		send := func(items string) string {
			status, answer := postResponses(t, s, "/responses", `{"model":"m","store":false,"input":[`+items+`]}`)
			if status == http.StatusOK {
				return "taken"
			}
			return answer
		}
		const asked, again = `{"role":"user","content":"go"},`, `,{"role":"user","content":"on"}`
		_, answer := postResponses(t, s, "/responses", `{"model":"m","store":false,"input":"go"}`)
		said := output(t, answer)
		reasoning, message, found := strings.Cut(said, `,{"type":"message"`)
		if message = `{"type":"message"` + message; !found || !strings.Contains(reasoning, `"type":"reasoning"`) {
			t.Fatalf("no reasoning in %s", answer)
		}
		f := func(items, want string) {
			t.Helper()
			if got := send(items); !strings.Contains(got, want) {
				t.Errorf("%s: %s\ngot %s, want %s", form, items, got, want)
			}
		}
		anonymous := strings.Replace(message, `"id":"msg_000000",`, "", 1)
		f(asked+said+again, "taken")
		f(asked+anonymous+again, "taken")
		if form == fakeupstream.SealClaudeDetails {
			f(`{"role":"user","content":"stop"},`+said+again, "bound to a different conversation")
			f(asked+message+again, "taken")
			continue
		}
		f(`{"role":"user","content":"stop"},`+said+again, "taken")
		f(asked+message+again, "without its required 'reasoning' item")
		f(asked+reasoning+again, "without its required following item")
		f(`{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"forged"}`, "could not be verified")
	}
}

// TestResponsesKept: a request can continue a history that the server stores by its id, and can refer to its items.
func TestResponsesKept(t *testing.T) {
	s := startResponses(t, fakeupstream.Options{})
	s.Script(fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{{ID: "A", Name: "ls", Arguments: "{}"}}})
	_, answer := postResponses(t, s, "/responses", `{"model":"m","input":"go"}`)
	if !strings.Contains(answer, `"call_id":"A"`) {
		t.Fatal(answer)
	}
	const given = `{"type":"function_call_output","call_id":"A","output":"x"}`
	for _, body := range []string{
		`{"model":"m","previous_response_id":"resp_000000","input":[` + given + `]}`,
		`{"model":"m","input":[{"role":"user","content":"go"},{"type":"item_reference","id":"fc_000000_0"},` + given + `]}`,
	} {
		if status, answer := postResponses(t, s, "/responses", body); status != http.StatusOK {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
}

// TestResponsesCompaction: a compaction returns one item, which the server accepts later. A server without compaction refuses all of this.
func TestResponsesCompaction(t *testing.T) {
	const asked, trigger = `{"role":"user","content":"go"},`, `{"type":"compaction_trigger"}`
	s := startResponses(t, fakeupstream.Options{})
	for path, body := range map[string]string{
		"/responses":         `{"model":"m","input":[` + asked + trigger + `]}`,
		"/responses/compact": `{"model":"m","input":[` + strings.TrimSuffix(asked, ",") + `]}`,
	} {
		_, answer := postResponses(t, s, path, body)
		item := output(t, answer)
		if strings.Count(item, `"type"`) != 1 || !strings.Contains(item, `"type":"compaction"`) {
			t.Errorf("%s: %s", path, answer)
		}
		if status, answer := postResponses(t, s, "/responses", `{"model":"m","input":[`+item+`,{"role":"user","content":"on"}]}`); status != http.StatusOK {
			t.Errorf("%d %s", status, answer)
		}
	}
	s = fakeupstream.New(fakeupstream.Options{})
	s.RefuseCompaction()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if status, answer := postResponses(t, s, "/responses", `{"model":"m","input":[`+asked+trigger+`]}`); status != http.StatusBadRequest {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer := postResponses(t, s, "/responses/compact", `{"model":"m","input":"go"}`); status != http.StatusNotFound {
		t.Errorf("%d %s", status, answer)
	}
}

// TestResponsesStream: events are numbered, and the last one has the whole answer.
func TestResponsesStream(t *testing.T) {
	s := startResponses(t, fakeupstream.Options{})
	s.Script(fakeupstream.Answer{Content: "let me look at it", ToolCalls: []fakeupstream.ToolCall{{ID: "A", Name: "ls", Arguments: `{"path":"/tmp"}`}},
		Message: json.RawMessage(`{"role":"assistant","content":"let me look at it","tool_calls":[{"id":"A","type":"function","function":{"name":"ls","arguments":"{\"path\":\"/tmp\"}"}}]}`)})
	_, stream := postResponses(t, s, "/responses", `{"model":"m","stream":true,"input":"go"}`)
	text, arguments, n, last := "", "", 0, ""
	for line := range strings.Lines(stream) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type     string
			Sequence int `json:"sequence_number"`
			Delta    string
			Response json.RawMessage
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Sequence != n {
			t.Fatalf("event %d: %v: %s", n, err, data)
		}
		switch n++; e.Type {
		case "response.output_text.delta":
			text += e.Delta
		case "response.function_call_arguments.delta":
			arguments += e.Delta
		}
		last = e.Type + " " + string(e.Response)
	}
	if text != "let me look at it" || arguments != `{"path":"/tmp"}` {
		t.Errorf("got %q and %q", text, arguments)
	}
	if !strings.HasPrefix(last, "response.completed") || !strings.Contains(last, `"call_id":"A"`) || !strings.Contains(last, `"cached_tokens":`) {
		t.Errorf("the last event is %s", last)
	}
}
