package summariser_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/session"
)

func asItems(base, model string) condense.Request {
	r := request(base+"/v1", model)
	r.Endpoint.Way.API = "responses"
	return r
}

// TestResponses: requests have the form of the Responses API, and its answers are translated like those of Chat Completions.
func TestResponses(t *testing.T) {
	function := func(r *condense.Request) {
		r.Function = &condense.Schema{Name: "note", Description: "d", JSON: []byte(`{"type":"object"}`)}
	}
	format := func(r *condense.Request) {
		r.Format = &condense.Schema{Name: "ranking", JSON: []byte(`{"type":"object"}`)}
	}
	usage := session.Usage{Input: 100, Cached: 40, Output: 20}
	const (
		said    = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"STATE: fine"}]}`
		called  = `{"type":"function_call","call_id":"a","name":"note","arguments":"{\"ids\":[]}"}`
		refused = `{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`
		thought = `{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}`
		metered = `"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":40},"output_tokens":20}`
		begun   = `{"type":"response.created","response":{"status":"in_progress","output":[],"usage":null,"error":null}}`
		plain   = `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"events"}]}]`
	)
	item := func(text string) string { return `{"type":"response.output_item.done","item":` + text + `}` }
	last := func(status, more, output string) string {
		return `{"type":"response.` + status + `","response":{"status":"` + status + `",` + more + metered + `,"output":[` + output + `]}}`
	}
	for name, c := range map[string]struct {
		change func(*condense.Request)
		events []string // a single one is an answer that is not streamed
		sent   string
		want   condense.Reply
		kind   condense.Failure
		code   string
	}{
		"text": {nil, []string{": wait", begun, item(thought), `{"type":"response.output_text.delta","delta":"x"}`, item(said), last("completed", "", thought+","+said)}, plain,
			condense.Reply{Text: "STATE: fine", Finish: "stop", Usage: usage}, "", ""},
		"no items in the end": {nil, []string{begun, item(said), last("completed", "", "")}, plain, condense.Reply{Text: "STATE: fine", Finish: "stop", Usage: usage}, "", ""},
		"items in the end":    {nil, []string{begun, last("completed", "", said)}, plain, condense.Reply{Text: "STATE: fine", Finish: "stop", Usage: usage}, "", ""},
		"cut by length": {nil, []string{begun, item(said), last("incomplete", `"incomplete_details":{"reason":"max_output_tokens"},`, said)}, plain,
			condense.Reply{Text: "STATE: fine", Finish: "length", Usage: usage}, "", ""},
		"refusal": {nil, []string{begun, item(refused), last("completed", "", refused)}, plain, condense.Reply{Refusal: "no", Finish: "stop", Usage: usage}, "", ""},
		"function": {function, []string{begun, item(called), last("completed", "", called)},
			plain + `,"tools":[{"type":"function","name":"note","description":"d","parameters":{"type":"object"},"strict":false}],"tool_choice":{"type":"function","name":"note"}`,
			condense.Reply{Arguments: `{"ids":[]}`, Finish: "tool_calls", Usage: usage}, "", ""},
		"format": {format, []string{begun, item(said), last("completed", "", said)},
			`"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"events"}]}],` +
				`"text":{"format":{"type":"json_schema","name":"ranking","schema":{"type":"object"},"strict":true}}`,
			condense.Reply{Text: "STATE: fine", Finish: "stop", Usage: usage}, "", ""},
		"whole":         {nil, []string{`{"status":"completed",` + metered + `,"output":[` + said + `]}`}, plain, condense.Reply{Text: "STATE: fine", Finish: "stop", Usage: usage}, "", ""},
		"cut off":       {nil, []string{begun, item(said)}, plain, condense.Reply{}, condense.FailureUnreachable, ""},
		"error":         {nil, []string{begun, `{"type":"error","code":"server_error","message":"` + key + `"}`}, plain, condense.Reply{}, condense.FailureServer, "server_error"},
		"numeric error": {nil, []string{begun, `{"type":"error","code":500,"message":"` + key + `"}`}, plain, condense.Reply{}, condense.FailureServer, ""},
		"failed": {nil, []string{begun, last("failed", `"error":{"code":"rate_limit_exceeded","message":"`+key+`"},`, "")}, plain,
			condense.Reply{}, condense.FailureRateLimited, "rate_limit_exceeded"},
		"no event": {nil, []string{begun, `{"type":` + key}, plain, condense.Reply{}, condense.FailureMalformed, ""},
	} {
		var body []byte
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if h := r.Header; r.URL.Path != "/v1/responses" || h.Get("Authorization") != "Bearer "+key {
				t.Errorf("%s: %s with %v", name, r.URL.Path, h)
			}
			body, _ = io.ReadAll(r.Body)
			if len(c.events) == 1 {
				io.WriteString(w, c.events[0])
				return
			}
			events(w, c.events...)
		}))
		r := asItems(server.URL, "a-model")
		if c.change != nil {
			c.change(&r)
		}
		got, err := summariser.Caller{}.Summarise(t.Context(), r)
		server.Close()
		failed, _ := errors.AsType[*condense.CallError](err)
		if got != c.want || c.kind == "" && err != nil || c.kind != "" && (failed == nil || failed.Kind != c.kind || failed.Code != c.code) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if err != nil && strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v tells the key", name, err)
		}
		sameJSON(t, name, body, `{"model":"a-model","max_output_tokens":321,"stream":true,"store":false,"instructions":"summarise",`+c.sent+`}`)
	}
}

// TestResponsesLacks: parameters that a server refuses are left out.
func TestResponsesLacks(t *testing.T) {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		var body map[string]json.RawMessage
		_ = json.NewDecoder(r.Body).Decode(&body)
		switch {
		case body["max_output_tokens"] != nil:
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"detail":"Unsupported parameter: max_output_tokens"}`)
		case body["reasoning"] != nil:
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"Unsupported value: 'reasoning.effort'"}}}`)
		default:
			io.WriteString(w, `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"fine"}]}]}`)
		}
	}))
	defer server.Close()
	got, err := summariser.Caller{}.Summarise(t.Context(), asItems(server.URL, "gpt-5-mini"))
	if err != nil || got.Text != "fine" || calls != 3 {
		t.Errorf("%d calls: %+v, %v", calls, got, err)
	}
}
