package plug

import "github.com/dewpoint-proxy/dewpoint/internal/rawjson"

// UsagePath is where a gateway reports what a request has used, below the base URL.
const UsagePath = "/usage"

// Usage is such a report.
type Usage struct {
	ID      string // of the request: that of our answer, or the gateway's own; empty: not given
	Session string // the session key that the history was sent with; empty: not given
	Answer  []byte // an answer with that usage and nothing else, in a provider's form
	Form    Form   // which form that is
}

// Form is the form of a usage.
type Form int

// The forms of a usage.
const (
	FormChat     Form = iota // prompt_tokens and completion_tokens
	FormMessages             // Anthropic's: input_tokens without those of the cache
	FormItems                // the Responses API's: input_tokens with those of the cache
)

// ReadUsage reads a report.
func ReadUsage(text []byte) (Usage, error) {
	o, err := open(text, "id", "request_id", "litellm_call_id", "session_id", "usage")
	if err != nil {
		return Usage{}, err
	}
	if !o.has("usage", rawjson.Object) {
		return Usage{}, ErrNothing
	}
	u := Usage{Session: o["session_id"].Text(), Answer: append(append([]byte(`{"usage":`), o["usage"].Raw...), '}')}
	for _, name := range []string{"id", "request_id", "litellm_call_id"} {
		if id := o[name].Text(); u.ID == "" {
			u.ID = id
		}
	}
	counts, err := members(o["usage"].Raw, "prompt_tokens", "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
	if err != nil {
		return Usage{}, err
	}
	switch {
	case counts.has("prompt_tokens", rawjson.Number):
		u.Form = FormChat
	case counts["cache_read_input_tokens"].Kind != 0, counts["cache_creation_input_tokens"].Kind != 0:
		u.Form = FormMessages
	case counts.has("input_tokens", rawjson.Number):
		u.Form = FormItems
	default:
		return Usage{}, ErrNothing
	}
	return u, nil
}

// WriteUsage returns the answer to a report. Why says why it was not used; empty: it was.
func WriteUsage(why string) []byte {
	if why == "" {
		return []byte(`{"recorded":true}`)
	}
	return append(rawjson.AppendQuote([]byte(`{"recorded":false,"reason":`), why), '}')
}
