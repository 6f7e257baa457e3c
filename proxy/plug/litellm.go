package plug

import (
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// LiteLLM is the wire of LiteLLM's generic_guardrail_api. Whatever protocol its client speaks, LiteLLM shows the history as messages of Chat
// Completions, and puts a list of another length in the place of its own.
type LiteLLM struct {
	Path string // at which a client would send the history
}

// LiteLLMPath is where LiteLLM sends it.
const LiteLLMPath = "/beta/litellm_basic_guardrail_api"

// Name implements Wire.
func (LiteLLM) Name() string { return "litellm" }

// Patience implements Wire. LiteLLM's client waits for minutes.
func (LiteLLM) Patience() time.Duration { return 0 }

// present stands for the value of a header that LiteLLM does not show, since it is not among the extra_headers.
const present = "[present]"

// Read implements Wire.
func (w LiteLLM) Read(text []byte) (Ask, error) {
	o, err := open(text, "input_type", "structured_messages", "tools", "model", "request_headers", "request_data", "litellm_call_id", "litellm_trace_id")
	switch {
	case err != nil:
		return Ask{}, err
	case !o["input_type"].Is("request"):
		return Ask{}, ErrKind
	case !o.has("structured_messages", rawjson.Array):
		return Ask{}, ErrNothing
	}
	o["messages"] = o["structured_messages"]
	ask := Ask{Path: w.Path, Body: o.compose("model", "tools", "messages"), Header: map[string]string{}, ID: o["litellm_call_id"].Text()}
	named := false
	for key, value := range rawjson.Members(o["request_headers"].Raw) {
		name := strings.ToLower(string(key.Raw))
		named = named || namesSession(name)
		if v := value.Text(); v != present {
			ask.Header[name] = v
		}
	}
	if trace := o["litellm_trace_id"].Text(); named && ask.Header[traceHeader] == "" { // otherwise it is random, or names a single request
		ask.Header[traceHeader] = trace
	}
	about, _ := members(o["request_data"].Raw, "user_api_key_hash")
	ask.KeyHash = about["user_api_key_hash"].Text()
	ask.User = ask.KeyHash
	return ask, nil
}

// traceHeader is the header as which the trace id counts.
const traceHeader = "x-litellm-session-id"

// namesSession reports whether LiteLLM makes its trace id of the value of a header with this name.
func namesSession(name string) bool {
	return name == "x-litellm-trace-id" || name == "thread-id" || strings.HasSuffix(name, "session-id")
}

// Write implements Wire.
func (LiteLLM) Write(_ Ask, done Done) []byte {
	if done.Body == nil {
		return appendWhy([]byte(`{"action":"NONE"`), done)
	}
	out := append([]byte(`{"action":"GUARDRAIL_INTERVENED","structured_messages":`), member(done.Body, "messages")...)
	return append(out, '}')
}

// appendWhy ends an object with why nothing was done.
func appendWhy(out []byte, done Done) []byte {
	if done.Why != "" {
		out = rawjson.AppendQuote(append(out, `,"reason":`...), done.Why)
	}
	return append(out, '}')
}
