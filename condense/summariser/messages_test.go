package summariser_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/session"
)

const began = `{"type":"message_start","message":{"usage":{"input_tokens":50,"cache_read_input_tokens":40,"cache_creation_input_tokens":10,"output_tokens":1}}}`

func ended(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":20}}`
}

const stopped = `{"type":"message_stop"}`

func blockOf(block string, deltas ...string) []string {
	all := []string{`{"type":"content_block_start","index":0,"content_block":` + block + `}`}
	for _, d := range deltas {
		all = append(all, `{"type":"content_block_delta","index":0,"delta":{`+d+`}}`)
	}
	return append(all, `{"type":"content_block_stop","index":0}`)
}

func join(parts ...any) (all []string) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			all = append(all, p)
		case []string:
			all = append(all, p...)
		}
	}
	return all
}

func anthropic(base string) condense.Request {
	r := request(base+"/v1", "claude-x")
	r.Endpoint.Way.API = "messages"
	return r
}

// TestMessages: requests have the form of the Messages API, and its answers are translated like those of Chat Completions.
func TestMessages(t *testing.T) {
	function := func(r *condense.Request) {
		r.Function = &condense.Schema{Name: "note", Description: "d", JSON: []byte(`{"type":"object"}`)}
	}
	format := func(r *condense.Request) {
		r.Format = &condense.Schema{Name: "ranking", JSON: []byte(`{"type":"object"}`)}
	}
	text := blockOf(`{"type":"text","text":""}`, `"type":"text_delta","text":"STATE:"`, `"type":"text_delta","text":" fine"`)
	call := func(name string) []string {
		return blockOf(`{"type":"tool_use","id":"a","name":"`+name+`","input":{}}`, `"partial_json":""`, `"partial_json":"{\"ids\""`, `"partial_json":":[]}"`)
	}
	usage := session.Usage{Input: 100, Cached: 40, Output: 20, Written: 10}
	const plain = `"messages":[{"role":"user","content":[{"type":"text","text":"events"}]}]`
	for name, c := range map[string]struct {
		change func(*condense.Request)
		events []string // a single one that begins with { is an answer that is not streamed
		sent   string
		want   condense.Reply
		kind   condense.Failure
		code   string
	}{
		"text": {nil, join(": wait", began, `{"type":"ping"}`, text, ended("end_turn"), stopped), plain,
			condense.Reply{Text: "STATE: fine", Finish: "stop", Usage: usage}, "", ""},
		"thinking is none": {nil, join(began, blockOf(`{"type":"thinking","thinking":""}`, `"thinking":"hm"`), text, ended("max_tokens"), stopped), plain,
			condense.Reply{Text: "STATE: fine", Finish: "length", Usage: usage}, "", ""},
		"refusal": {nil, join(began, ended("refusal"), stopped), plain, condense.Reply{Finish: "content_filter", Usage: usage}, "", ""},
		"function": {function, join(began, call("note"), ended("tool_use"), stopped),
			plain + `,"tools":[{"name":"note","description":"d","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"note"}`,
			condense.Reply{Arguments: `{"ids":[]}`, Finish: "tool_calls", Usage: usage}, "", ""},
		"format": {format, join(began, call("ranking"), ended("tool_use"), stopped),
			`"messages":[{"role":"user","content":[{"type":"text","text":"events"}]}],` +
				`"tools":[{"name":"ranking","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"ranking"}`,
			condense.Reply{Text: `{"ids":[]}`, Finish: "tool_calls", Usage: usage}, "", ""},
		"whole": {nil, []string{`{"type":"message","content":[{"type":"text","text":"STATE: fine"}],"stop_reason":"end_turn","usage":{"input_tokens":3}}`}, plain,
			condense.Reply{Text: "STATE: fine", Finish: "stop", Usage: session.Usage{Input: 3}}, "", ""},
		"cut off": {nil, join(began, text), plain, condense.Reply{}, condense.FailureUnreachable, ""},
		"error": {nil, join(began, `{"type":"error","error":{"type":"overloaded_error","message":"`+key+`"}}`), plain,
			condense.Reply{}, condense.FailureServer, "overloaded_error"},
		"no event": {nil, join(began, `{"type":`+key), plain, condense.Reply{}, condense.FailureMalformed, ""},
	} {
		var body []byte
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if h := r.Header; r.URL.Path != "/v1/messages" || h.Get("X-Api-Key") != key || h.Get("Authorization") != "" || h.Get("Anthropic-Version") != "2023-06-01" {
				t.Errorf("%s: %s with %v", name, r.URL.Path, h)
			}
			body, _ = io.ReadAll(r.Body)
			if len(c.events) == 1 {
				io.WriteString(w, c.events[0])
				return
			}
			events(w, c.events...)
		}))
		r := anthropic(server.URL)
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
		sameJSON(t, name, body, `{"model":"claude-x","max_tokens":321,"stream":true,"system":"summarise",`+c.sent+`}`)
	}
}

// TestMessagesFailures: errors are classified like those of Chat Completions.
func TestMessagesFailures(t *testing.T) {
	for status, want := range map[int]condense.Failure{
		400: condense.FailureRejected, 401: condense.FailureDenied, 404: condense.FailureRejected, 413: condense.FailureRejected,
		429: condense.FailureRateLimited, 500: condense.FailureServer, 529: condense.FailureServer,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, `{"type":"error","error":{"type":"some_error","message":"`+key+`"}}`)
		}))
		_, err := summariser.Caller{}.Summarise(t.Context(), anthropic(server.URL))
		server.Close()
		e, ok := errors.AsType[*condense.CallError](err)
		if !ok || e.Kind != want || e.Status != status || e.Code != "some_error" {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// TestMessagesSilence: a call is cancelled if the server sends nothing, or stops sending.
func TestMessagesSilence(t *testing.T) {
	for _, sent := range [][]string{nil, {began}} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if sent != nil {
				events(w, sent...)
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}))
		_, err := summariser.Caller{Timeout: time.Millisecond}.Summarise(t.Context(), anthropic(server.URL))
		server.Close()
		if e, ok := errors.AsType[*condense.CallError](err); !ok || e.Kind != condense.FailureTimeout {
			t.Errorf("after %d events: %v", len(sent), err)
		}
	}
}
