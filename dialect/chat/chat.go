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

// Options say how to read. The zero value of each means its default.
type Options struct {
	Fields   []string // these three as in split.Options
	MaxDepth int
	Remember int
	// MaxKept bounds the bytes that a Tee keeps of an answer's text, and again of the arguments of its calls. Default
	// 256 KiB.
	MaxKept int
	// MaxEvent bounds one event of a stream; a longer one is not read. Default 1 MiB.
	MaxEvent int
	// MaxAnswer bounds a whole answer that is not streamed; a longer one is not read. Default 4 MiB.
	MaxAnswer int
}

// Dialect implements dialect.Dialect. Make one with New.
type Dialect struct {
	options Options
	bodies  *split.Splitter
}

var _ dialect.Dialect = (*Dialect)(nil)

// New makes the dialect.
func New(o Options) *Dialect {
	o.MaxKept = fallback(o.MaxKept, 256<<10)
	o.MaxEvent = fallback(o.MaxEvent, 1<<20)
	o.MaxAnswer = fallback(o.MaxAnswer, 4<<20)
	return &Dialect{options: o, bodies: split.New(format(), split.Options{Fields: o.Fields, MaxDepth: o.MaxDepth, Remember: o.Remember})}
}

// format is what bodies are like.
func format() split.Format {
	return split.Format{
		List:    "messages",
		Members: []string{"model", "stream", "max_tokens", "max_completion_tokens", "tools", "functions", "thinking"},
		Version: version, Texts: []string{"text"}, Skip: isThinking, Reader: newReader,
	}
}

func fallback(n, standard int) int {
	if n <= 0 {
		return standard
	}
	return n
}

// Name is "chat".
func (d *Dialect) Name() string { return "chat" }

// Keeps implements dialect.Keeper.
func (d *Dialect) Keeps(body []byte) time.Duration { return split.Keeps(body) }

// Note writes a user message that carries text. What is not UTF-8 in it becomes U+FFFD.
func (d *Dialect) Note(text string) []byte { return written("user", text) }

// Reply writes an assistant message that carries text, as Note does.
func (d *Dialect) Reply(text string) []byte { return written("assistant", text) }

func written(role, text string) []byte {
	b := make([]byte, 0, len(text)+len(text)/16+64)
	b = append(b, `{"role":"`+role+`","content":`...)
	b = rawjson.AppendQuote(b, text)
	return append(b, '}')
}

// Split checks and slices a body. The error is a *dialect.Error.
func (d *Dialect) Split(body []byte) (*dialect.Request, error) { return d.bodies.Split(body, finish) }

func finish(w *split.Walker, r *dialect.Request) {
	r.Model, r.Stream = w.Member("model").Text(), w.Member("stream").Kind == rawjson.True
	r.NeedsReasoning = manual(w.Member("thinking"))
	if r.MaxOutput = split.Integer(w.Member("max_completion_tokens")); r.MaxOutput == 0 {
		r.MaxOutput = split.Integer(w.Member("max_tokens"))
	}
	for _, name := range [...]string{"functions", "tools"} {
		if v := w.Member(name); v.Kind == rawjson.Array {
			r.Tools = v.Raw
		}
	}
}

// manual reports whether thinking was switched on by hand, with a budget.
func manual(thinking rawjson.Value) bool {
	for key, v := range rawjson.Members(thinking.Raw) {
		if string(key.Raw) == "type" {
			return v.Is("enabled")
		}
	}
	return false
}

// kindOf says what a message of a role is; assistant messages are told apart by what they carry.
func kindOf(role string) session.Kind {
	switch role {
	case "system", "developer":
		return session.System
	case "user":
		return session.User
	case "assistant":
		return session.Agent
	case "tool", "function":
		return session.Observation
	}
	return 0
}

// Failure writes an error in OpenAI's shape.
func (d *Dialect) Failure(f dialect.Failure) []byte { return f.OpenAI() }

// Event writes an error as an event of a stream.
func (d *Dialect) Event(failure []byte) []byte {
	return slices.Concat([]byte("data: "), failure, []byte("\n\n"))
}

// Key sends a key as a bearer token.
func (d *Dialect) Key(key string) (name, value string) { return "Authorization", "Bearer " + key }
