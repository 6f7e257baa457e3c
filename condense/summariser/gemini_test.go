package summariser_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestGemini: requests have the form of generateContent, in the path of the model, and its answers are translated like those of Chat Completions.
func TestGemini(t *testing.T) {
	usage := session.Usage{Input: 100, Cached: 40, Output: 20}
	const (
		metered = `"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":40,"candidatesTokenCount":15,"thoughtsTokenCount":5}`
		prompt  = `"contents":[{"role":"user","parts":[{"text":"events"}]}],"systemInstruction":{"parts":[{"text":"summarise"}]}`
		limited = prompt + `,"generationConfig":{"maxOutputTokens":321}`
		path    = "/base/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
	)
	piece := func(part, more string) string {
		return `{"candidates":[{"content":{"role":"model","parts":[` + part + `]}` + more + `}],` + metered + `}`
	}
	const stop = `,"finishReason":"STOP"`
	thought := piece(`{"text":"hm","thought":true}`, "")
	for name, c := range map[string]struct {
		change func(*condense.Request)
		events []string // a single one is an answer that is not streamed
		path   string
		sent   string
		want   condense.Reply
		kind   condense.Failure
	}{
		"text": {nil, []string{thought, piece(`{"text":"STATE:"}`, ""), piece(`{"text":" fine"}`, stop)}, path, limited,
			condense.Reply{Text: "STATE: fine", Finish: "stop", Usage: usage}, ""},
		"whole": {nil, []string{piece(`{"text":"STATE: fine"}`, stop)}, path, limited, condense.Reply{Text: "STATE: fine", Finish: "stop", Usage: usage}, ""},
		"cut by length": {nil, []string{thought, piece(`{"text":"STATE:"}`, `,"finishReason":"MAX_TOKENS"`)}, path, limited,
			condense.Reply{Text: "STATE:", Finish: "length", Usage: usage}, ""},
		"blocked": {nil, []string{thought, piece(``, `,"finishReason":"SAFETY"`)}, path, limited, condense.Reply{Finish: "content_filter", Usage: usage}, ""},
		"malformed": {nil, []string{piece(`{"text":"STATE"}`, `,"finishReason":"MALFORMED_FUNCTION_CALL"`)}, path, limited,
			condense.Reply{Text: "STATE", Finish: "error", Usage: usage}, ""},
		"cut off": {nil, []string{thought, piece(`{"text":"STATE:"}`, "")}, path, limited, condense.Reply{}, condense.FailureUnreachable},
		"error":   {nil, []string{thought, `{"error":{"code":503,"status":"UNAVAILABLE"}}`}, path, limited, condense.Reply{}, condense.FailureServer},
		"function": {
			func(r *condense.Request) {
				r.Function = &condense.Schema{Name: "note", Description: "d", JSON: []byte(`{"type":"object"}`)}
			},
			[]string{thought, piece(`{"functionCall":{"name":"note","args":{"ids":[]}}}`, stop)}, path,
			limited + `,"tools":[{"functionDeclarations":[{"name":"note","description":"d","parametersJsonSchema":{"type":"object"}}]}],` +
				`"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["note"]}}`,
			condense.Reply{Arguments: `{"ids":[]}`, Finish: "tool_calls", Usage: usage}, "",
		},
		"format": {
			func(r *condense.Request) {
				r.Format = &condense.Schema{Name: "ranking", JSON: []byte(`{"type":"object"}`)}
			},
			[]string{thought, piece(`{"text":"{}"}`, stop)}, path,
			prompt + `,"generationConfig":{"maxOutputTokens":321,"responseMimeType":"application/json","responseJsonSchema":{"type":"object"}}`,
			condense.Reply{Text: `{}`, Finish: "stop", Usage: usage}, "",
		},
		"a client's own path": {
			func(r *condense.Request) {
				r.Model = "gemini-3-flash"
				r.Endpoint.Way.Path = "/v1beta1/projects/p/locations/l/publishers/google/models/gemini-3-pro"
			},
			[]string{thought, piece(`{"text":"STATE: fine"}`, stop)},
			"/base/v1beta1/projects/p/locations/l/publishers/google/models/gemini-3-flash:streamGenerateContent?alt=sse",
			prompt + `,"generationConfig":{"maxOutputTokens":321,"thinkingConfig":{"thinkingLevel":"low"}}`,
			condense.Reply{Text: "STATE: fine", Finish: "stop", Usage: usage}, "",
		},
		"Code Assist": {
			func(r *condense.Request) { r.Endpoint.Way.Path = "/v1internal" },
			[]string{`{"response":` + thought + `}`, `{"response":` + piece(`{"text":"STATE: fine"}`, stop) + `}`},
			"/base/v1internal:streamGenerateContent?alt=sse", `"model":"gemini-2.5-pro","request":{` + limited + `}`,
			condense.Reply{Text: "STATE: fine", Finish: "stop", Usage: usage}, "",
		},
	} {
		var body []byte
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if h := r.Header; r.URL.RequestURI() != c.path || h.Get("X-Goog-Api-Key") != key || h.Get("Authorization") != "" {
				t.Errorf("%s: %s with %v", name, r.URL.RequestURI(), h)
			}
			body, _ = io.ReadAll(r.Body)
			if len(c.events) == 1 {
				io.WriteString(w, c.events[0])
				return
			}
			events(w, c.events...)
		}))
		r := request(server.URL+"/base/v1beta", "gemini-2.5-pro")
		r.Endpoint.Way.API = "gemini"
		if c.change != nil {
			c.change(&r)
		}
		got, err := summariser.Caller{}.Summarise(t.Context(), r)
		server.Close()
		failed, _ := errors.AsType[*condense.CallError](err)
		if got != c.want || c.kind == "" && err != nil || c.kind != "" && (failed == nil || failed.Kind != c.kind) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		sameJSON(t, name, body, `{`+c.sent+`}`)
	}
}
