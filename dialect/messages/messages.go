// Package messages implements the dialect of Anthropic's Messages API: POST /v1/messages.
//
// A user message may contain the results of several calls, and text between them. Each result can be hidden or kept, so
// Split returns every result, and every run of other blocks between results, as a separate session.Message. Join
// reassembles them. The system prompt, which is outside the list, is the first message. The raw text of a message shows
// what it is:
//
//	{"role": ...}               a whole element of the list
//	{"type": "tool_result" ...} a result
//	{"type": ...}, {...}        other blocks of a user message, separated by commas
//	"..." or [...]              the system prompt
//
// https://docs.claude.com/en/api/messages
package messages

import (
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Path is the path of the endpoint below the base URL.
const Path = "/messages"

// CountPath is the path of the endpoint that counts the tokens of a request.
const CountPath = "/messages/count_tokens"

// list is the member of a body that holds the history.
const list = "messages"

// Dialect implements dialect.Dialect. Create one with New.
type Dialect struct {
	assemble.Tools
	bodies *split.Splitter
}

var _ dialect.Dialect = (*Dialect)(nil)

// New returns the dialect.
func New(o split.Options) *Dialect {
	format := split.Format{
		List: list, Element: "a message",
		Members: []string{"max_tokens", "system", "thinking"},
		Version: version, Texts: []string{"text"}, Skip: isThinking,
		Reader: func(w *split.Walker) split.Reader {
			return split.Reader{Keys: messageKeys, Element: (&reader{w: w}).element}
		},
	}
	tools := assemble.Tools{
		Before: "{", Parameters: "input_schema", After: "}", Answer: `{"type":"tool_result","tool_use_id":%s,"content":%s}`,
	}
	return &Dialect{tools, split.New(format, o)}
}

// Name returns "messages".
func (d *Dialect) Name() string { return "messages" }

// Split validates and slices a body. The error is a *dialect.Error.
func (d *Dialect) Split(body []byte) (*dialect.Request, error) { return d.bodies.Split(body, finish) }

func finish(w *split.Walker, r *dialect.Request) {
	r.MaxOutput = split.Integer(w.Member("max_tokens"))
	r.NeedsReasoning = split.Member(w.Member("thinking"), "type").Is("enabled")
	if system := w.Member("system"); system.Kind == rawjson.String || system.Kind == rawjson.Array {
		first := session.Message{Raw: system.Raw, Kind: session.System, Digest: w.Digest.Message("system", system)}
		r.Messages = append([]session.Message{first}, r.Messages...)
	}
}

// Note encodes text as a user message. Invalid UTF-8 becomes U+FFFD.
func (d *Dialect) Note(text string) []byte { return split.TextMessage("user", text) }

// Reply encodes text as an assistant message. Invalid UTF-8 becomes U+FFFD.
func (d *Dialect) Reply(text string) []byte { return split.TextMessage("assistant", text) }
