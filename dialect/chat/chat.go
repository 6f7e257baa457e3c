// Package chat is the Chat Completions dialect: POST /v1/chat/completions as OpenAI defines it and as its many
// compatible servers extend it.
package chat

import (
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Path is where the dialect is served, below the base URL.
const Path = "/chat/completions"

// Options say how to read.
type Options = split.Options

// Dialect implements dialect.Dialect. Make one with New.
type Dialect struct {
	bodies *split.Splitter
	depth  int // how deep a message may be nested
}

var _ dialect.Dialect = (*Dialect)(nil)

// New makes the dialect.
func New(o Options) *Dialect {
	return &Dialect{depth: o.MaxDepth, bodies: split.New(split.Format{
		List: "messages", Element: "a message",
		Members: []string{"max_tokens", "max_completion_tokens", "functions", "thinking"},
		Version: version, Texts: []string{"text"}, Skip: isThinking,
		Reader: func(w *split.Walker) split.Reader { return split.Reader{Keys: messageKeys, Element: reader{w}.element} },
	}, o)}
}

// Name is "chat".
func (d *Dialect) Name() string { return "chat" }

// Keeps implements dialect.Keeper.
func (d *Dialect) Keeps(body []byte) time.Duration { return split.Keeps(body) }

// Note writes a user message that carries text. What is not UTF-8 in it becomes U+FFFD.
func (d *Dialect) Note(text string) []byte { return split.Written("user", text) }

// Reply writes an assistant message that carries text, as Note does.
func (d *Dialect) Reply(text string) []byte { return split.Written("assistant", text) }

// Split checks and slices a body. The error is a *dialect.Error.
func (d *Dialect) Split(body []byte) (*dialect.Request, error) { return d.bodies.Split(body, finish) }

func finish(w *split.Walker, r *dialect.Request) {
	r.NeedsReasoning = split.Member(w.Member("thinking"), "type").Is("enabled") // by hand, with a budget
	if r.MaxOutput = split.Integer(w.Member("max_completion_tokens")); r.MaxOutput == 0 {
		r.MaxOutput = split.Integer(w.Member("max_tokens"))
	}
	if functions := w.Member("functions"); r.Tools == nil && functions.Kind == rawjson.Array {
		r.Tools = functions.Raw
	}
}

// kinds are what messages of the known roles are; assistant messages are told apart by what they carry.
var kinds = map[string]session.Kind{
	"system": session.System, "developer": session.System, "user": session.User, "assistant": session.Agent, "tool": session.Observation,
	"function": session.Observation,
}

// Failure writes an error in OpenAI's shape.
func (d *Dialect) Failure(f dialect.Failure) []byte { return f.OpenAI() }

// Event writes an error as an event of a stream.
func (d *Dialect) Event(failure []byte) []byte {
	return slices.Concat([]byte("data: "), failure, []byte("\n\n"))
}

// Key sends a key as a bearer token.
func (d *Dialect) Key(key string) (name, value string) { return "Authorization", "Bearer " + key }
