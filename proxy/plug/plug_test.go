package plug_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/proxy/plug"
)

const list = `[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`

func all() map[string]plug.Wire {
	return map[string]plug.Wire{
		"litellm":  plug.LiteLLM{Path: "/chat"},
		"portkey":  plug.Portkey{Paths: map[string]string{"chatComplete": "/chat", "messages": "/messages"}},
		"compress": plug.Compress{Chat: "/chat", Messages: "/messages", Items: "/items"},
	}
}

func TestRead(t *testing.T) {
	litellm := `{"input_type":"request","structured_messages":` + list + `,"tools":[{"type":"function"}],"model":"m","litellm_call_id":"c","litellm_trace_id":"t",
		"request_headers":{"X-Session-Id":"[present]","x-litellm-tags":"a","authorization":"[present]"},"request_data":{"user_api_key_hash":"h"}}`
	portkey := `{"request":{"json":{"model":"m","messages":` + list + `}},"requestType":"KIND","metadata":{"session_id":"s","_user":"u"},"eventType":"beforeRequestHook"}`
	for _, c := range []struct {
		wire, text string
		want       plug.Ask
		err        error
	}{
		{"litellm", litellm, plug.Ask{
			Path: "/chat", Body: []byte(`{"model":"m","tools":[{"type":"function"}],"messages":` + list + `}`), User: "h", KeyHash: "h", ID: "c",
			Header: map[string]string{"x-litellm-tags": "a", "x-litellm-session-id": "t"},
		}, nil},
		{"litellm", strings.Replace(litellm, "X-Session-Id", "host", 1), plug.Ask{
			Path: "/chat", Body: []byte(`{"model":"m","tools":[{"type":"function"}],"messages":` + list + `}`), User: "h", KeyHash: "h", ID: "c",
			Header: map[string]string{"x-litellm-tags": "a"},
		}, nil},
		{"litellm", strings.Replace(litellm, `"request"`, `"response"`, 1), plug.Ask{}, plug.ErrKind},
		{"litellm", strings.Replace(litellm, list, "null", 1), plug.Ask{}, plug.ErrNothing},
		{"litellm", strings.Replace(litellm, `"model"`, `"model":"n","model"`, 1), plug.Ask{}, plug.ErrTwice},
		{"litellm", litellm[1:], plug.Ask{}, plug.ErrJSON},
		{"portkey", strings.Replace(portkey, "KIND", "chatComplete", 1), plug.Ask{Path: "/chat", Body: []byte(`{"model":"m","messages":` + list + `}`), Session: "s", User: "u"}, nil},
		{"portkey", strings.Replace(portkey, "KIND", "messages", 1), plug.Ask{Path: "/messages", Body: []byte(`{"model":"m","messages":` + list + `}`), Session: "s", User: "u"}, nil},
		{"portkey", strings.Replace(portkey, "KIND", "embed", 1), plug.Ask{}, plug.ErrKind},
		{"portkey", `{"eventType":"afterRequestHook","requestType":"chatComplete","request":{}}`, plug.Ask{}, plug.ErrKind},
		{"compress", `{"messages":` + list + `}`, plug.Ask{Path: "/chat", Body: []byte(`{"messages":` + list + `}`), List: []byte(list)}, nil},
		{"compress", `{"messages":[{"role":"user","content":[{"type":"tool_result"}]}]}`, plug.Ask{
			Path: "/messages", Body: []byte(`{"messages":[{"role":"user","content":[{"type":"tool_result"}]}]}`), List: []byte(`[{"role":"user","content":[{"type":"tool_result"}]}]`),
		}, nil},
		{"compress", `{"input":` + list + `,"config":{"session_id":"s","mode":"ccr"},"token_budget":9}`, plug.Ask{
			Path: "/items", Body: []byte(`{"input":` + list + `,"config":{"session_id":"s","mode":"ccr"},"token_budget":9}`), List: []byte(list), Session: "s", Trims: true, Limit: 9,
		}, nil},
		{"compress", `{"input":"a"}`, plug.Ask{}, plug.ErrNothing},
		{"compress", `[]`, plug.Ask{}, plug.ErrJSON},
	} {
		got, err := all()[c.wire].Read([]byte(c.text))
		if !errors.Is(err, c.err) || text(got) != text(c.want) {
			t.Errorf("%s: %s\nread as %s, %v\nwant    %s, %v", c.wire, c.text, text(got), err, text(c.want), c.err)
		}
	}
}

// text shows an Ask for a comparison.
func text(a plug.Ask) string {
	if len(a.Header) == 0 {
		a.Header = nil
	}
	b, _ := json.Marshal(struct {
		plug.Ask
		Body, List string
	}{a, string(a.Body), string(a.List)})
	return string(b)
}

func TestWrite(t *testing.T) {
	changed := plug.Done{Body: []byte(`{"model":"m","messages":[1]}`), Before: 40, After: 10, Applied: []string{"dewpoint:excerpts"}, Request: "r", Session: "s", Thread: "t"}
	for _, c := range []struct {
		wire string
		ask  plug.Ask
		done plug.Done
		want string
	}{
		{"litellm", plug.Ask{}, plug.Done{}, `{"action":"NONE"}`},
		{"litellm", plug.Ask{}, plug.Done{Why: `a "b"`}, `{"action":"NONE","reason":"a \"b\""}`},
		{"litellm", plug.Ask{}, changed, `{"action":"GUARDRAIL_INTERVENED","structured_messages":[1]}`},
		{"portkey", plug.Ask{}, plug.Done{}, `{"verdict":true}`},
		{"portkey", plug.Ask{}, changed, `{"verdict":true,"transformedData":{"request":{"json":{"model":"m","messages":[1]}}}}`},
		{"compress", plug.Ask{Path: "/chat", List: []byte(list)}, changed, `{"messages":[1],"tokens_before":40,"tokens_after":10,"tokens_saved":30,"compression_ratio":0.25,` +
			`"transforms_applied":["dewpoint:excerpts"],"ccr_hashes":[],"session":{"id":"s","thread":"t","request":"r"}}`},
		{"compress", plug.Ask{Path: "/chat", List: []byte(list)}, plug.Done{Why: "x"}, `{"messages":` + list + `,"tokens_before":0,"tokens_after":0,"tokens_saved":0,` +
			`"compression_ratio":1,"transforms_applied":[],"ccr_hashes":[],"compression_skipped":true,"skip_reason":"x"}`},
		{"compress", plug.Ask{}, plug.Done{Why: "x"}, `{"tokens_before":0,"tokens_after":0,"tokens_saved":0,"compression_ratio":1,"transforms_applied":[],"ccr_hashes":[],` +
			`"compression_skipped":true,"skip_reason":"x"}`},
		{"compress", plug.Ask{Path: "/items", List: []byte(list)}, plug.Done{Body: []byte(`{"input":[2]}`)}, `{"messages":[2],"input":[2],"tokens_before":0,"tokens_after":0,` +
			`"tokens_saved":0,"compression_ratio":1,"transforms_applied":[],"ccr_hashes":[]}`},
	} {
		if got := string(all()[c.wire].Write(c.ask, c.done)); got != c.want {
			t.Errorf("%s: %s, want %s", c.wire, got, c.want)
		}
	}
}

func TestReadUsage(t *testing.T) {
	for text, want := range map[string]plug.Usage{
		`{"id":"a","usage":{"prompt_tokens":1}}`:                                    {ID: "a", Form: plug.FormChat},
		`{"litellm_call_id":"b","usage":{"input_tokens":1}}`:                        {ID: "b", Form: plug.FormItems},
		`{"session_id":"c","usage":{"input_tokens":1,"cache_read_input_tokens":2}}`: {Session: "c", Form: plug.FormMessages},
	} {
		got, err := plug.ReadUsage([]byte(text))
		if err != nil || got.ID != want.ID || got.Session != want.Session || got.Form != want.Form || len(got.Answer) == 0 {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{``, `{}`, `{"usage":[]}`, `{"usage":{"total":1}}`, `{"usage":{"prompt_tokens":1,"prompt_tokens":2}}`} {
		if got, err := plug.ReadUsage([]byte(text)); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// FuzzRead: nothing that is read makes a wire panic or answer with anything but JSON.
func FuzzRead(f *testing.F) {
	for _, text := range []string{`{"messages":` + list + `}`, `{"input_type":"request","structured_messages":[]}`, `{"request":{"json":{}}}`, `{"usage":{"prompt_tokens":1}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for name, wire := range all() {
			ask, err := wire.Read(text)
			done := plug.Done{Body: ask.Body}
			if err != nil {
				done = plug.Done{Why: err.Error()}
			}
			if answer := wire.Write(ask, done); !json.Valid(answer) {
				t.Errorf("%s answers %q to %q", name, answer, text)
			}
		}
		_, _ = plug.ReadUsage(text)
	})
}
