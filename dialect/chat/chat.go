// Package chat implements the Chat Completions dialect: POST /v1/chat/completions, as OpenAI defines it and as its many
// compatible servers extend it.
package chat

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Path is the path of the endpoint below the base URL.
const Path = "/chat/completions"

// Options configures the dialect.
type Options = split.Options

// Dialect implements dialect.Dialect. Create one with New.
type Dialect struct {
	split.OpenAI
	assemble.Tools
	bodies *split.Splitter
}

var _ dialect.Dialect = (*Dialect)(nil)

// New returns the dialect.
func New(o Options) *Dialect {
	format := split.Format{
		List: "messages", Element: "a message",
		Members: []string{"max_tokens", "max_completion_tokens", "n", "functions", "thinking"},
		Version: version, Texts: []string{"text"}, Skip: isThinking,
		Reader: func(w *split.Walker) split.Reader {
			return split.Reader{Keys: messageKeys, Element: reader{w}.element}
		},
	}
	tools := assemble.Tools{
		Before: `{"type":"function","function":{`, Parameters: "parameters", After: "}}",
		Answer: `{"role":"tool","tool_call_id":%s,"content":%s}`,
	}
	return &Dialect{Tools: tools, bodies: split.New(format, o)}
}

// Name returns "chat".
func (d *Dialect) Name() string { return "chat" }

// Note encodes text as a user message. Invalid UTF-8 becomes U+FFFD.
func (d *Dialect) Note(text string) []byte { return split.TextMessage("user", text) }

// Reply encodes text as an assistant message. Invalid UTF-8 becomes U+FFFD.
func (d *Dialect) Reply(text string) []byte { return split.TextMessage("assistant", text) }

// Split validates and slices a body. The error is a *dialect.Error.
func (d *Dialect) Split(_ string, body []byte) (*dialect.Request, error) {
	return d.bodies.Split(body, finish)
}

// maxChoices is the maximum number of answers that OpenAI writes for one request.
const maxChoices = 128

func finish(w *split.Walker, r *dialect.Request) {
	r.NeedsReasoning = split.Member(w.Member("thinking"), "type").Is("enabled") // Anthropic's manual thinking, with a budget
	for _, name := range [...]string{"max_completion_tokens", "max_tokens"} {
		if n := split.Integer(w.Member(name)); n != 0 && r.MaxOutput == 0 {
			r.MaxOutput, r.LimitedBy = n, name
		}
	}
	r.Choices = min(split.Integer(w.Member("n")), maxChoices)
	if functions := w.Member("functions"); r.Tools == nil && functions.Kind == rawjson.Array {
		r.Tools = functions.Raw
	}
}

// roles are the known roles, the most frequent ones first. An assistant message with calls becomes session.Action.
var roles = [...]struct {
	name string
	kind session.Kind
}{
	{"assistant", session.Agent}, {"tool", session.Observation}, {"user", session.User},
	{"system", session.System}, {"developer", session.System}, {"function", session.Observation},
}

// roleOf returns the name of a known role, without copying it, and its kind.
func roleOf(v rawjson.Value) (string, session.Kind) {
	for _, r := range roles {
		if v.Is(r.name) {
			return r.name, r.kind
		}
	}
	return "", 0
}

// Event wraps an encoded error in a stream event.
func (d *Dialect) Event(failure []byte) []byte {
	return slices.Concat([]byte("data: "), failure, []byte("\n\n"))
}
