// Package messages is the dialect of Anthropic's Messages API: POST /v1/messages.
//
// A user message may hold the results of several calls and text besides, which are forgotten and kept apart. So each result is a
// message of its own to the rest of the house, and so is what stands between and behind them; Join puts them together again. The
// system prompt, which stands outside the list, is the first message. The raw text of a message tells which it is:
//
//	{"role": ...}               an element of the list, whole
//	{"type": "tool_result" ...} a result
//	{"type": ...}, {...}        other blocks of a user message, separated by commas
//	"..." or [...]              the system prompt
//
// https://docs.claude.com/en/api/messages
package messages

import (
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Path is where the dialect is served, below the base URL.
const Path = "/messages"

// CountPath is where clients ask how many tokens a request has.
const CountPath = "/messages/count_tokens"

// list is the member that holds the history.
const list = "messages"

// Dialect implements dialect.Dialect. Make one with New.
type Dialect struct{ bodies *split.Splitter }

var _ dialect.Dialect = (*Dialect)(nil)

// New makes the dialect.
func New(o split.Options) *Dialect {
	return &Dialect{split.New(split.Format{
		List: list, Element: "a message",
		Members: []string{"max_tokens", "system", "thinking"},
		Version: version, Texts: []string{"text"}, Skip: isThinking,
		Reader: func(w *split.Walker) split.Reader {
			return split.Reader{Keys: messageKeys, Element: (&reader{w: w}).element}
		},
	}, o)}
}

// Name is "messages".
func (d *Dialect) Name() string { return "messages" }

// Split checks and slices a body. The error is a *dialect.Error.
func (d *Dialect) Split(body []byte) (*dialect.Request, error) { return d.bodies.Split(body, finish) }

func finish(w *split.Walker, r *dialect.Request) {
	r.MaxOutput = split.Integer(w.Member("max_tokens"))
	r.NeedsReasoning = split.Member(w.Member("thinking"), "type").Is("enabled")
	if system := w.Member("system"); system.Kind == rawjson.String || system.Kind == rawjson.Array {
		first := session.Message{Raw: system.Raw, Kind: session.System, Digest: digest(w.Digest(), "system", system)}
		r.Messages = append([]session.Message{first}, r.Messages...)
	}
}

// Note writes a user message that carries text. What is not UTF-8 in it becomes U+FFFD.
func (d *Dialect) Note(text string) []byte { return split.Written("user", text) }

// Reply writes an assistant message that carries text.
func (d *Dialect) Reply(text string) []byte { return split.Written("assistant", text) }
