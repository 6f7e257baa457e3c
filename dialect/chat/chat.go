// Package chat is the Chat Completions dialect: POST /v1/chat/completions as OpenAI defines it and as its many
// compatible servers extend it.
//
// Split goes over a body once. It refuses what two parsers could read differently (invalid JSON or UTF-8, text after the
// body, duplicates or escaped spellings of the keys it acts on, nesting beyond a bound), and takes everything else as it
// is. It is never stricter than the server behind: a body that is sound JSON but no conversation that it understands
// gives CodeUnsupported, and is to be passed on unchanged.
package chat

import (
	"sync"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Path is where the dialect is served, below the base URL.
const Path = "/chat/completions"

// Codes of the *dialect.Error that Split returns. All but CodeUnsupported are refusals.
const (
	CodeInvalidJSON  = "invalid_json"
	CodeInvalidUTF8  = "invalid_utf8"
	CodeTooDeep      = "too_deep"
	CodeDuplicateKey = "duplicate_key"
	CodeEscapedKey   = "escaped_key"
	// CodeUnsupported: sound JSON, but not a list of messages with roles that this dialect knows. Pass it on unchanged.
	CodeUnsupported = "unsupported"
)

// Options say how to read. The zero value of each means its default.
type Options struct {
	// Fields are the dotted paths of the body's members that may name the session, such as metadata.session_id. Only
	// string values count, cut to 512 bytes. The value of metadata.user_id counts only if it is itself a JSON object, in
	// text, with a session_id: then that is the value.
	Fields []string
	// MaxDepth is how deep a body may be nested. Default rawjson.DefaultDepth (512).
	MaxDepth int
	// MaxKept bounds the bytes that a Tee keeps of an answer's text, and again of the arguments of its calls. Default
	// 256 KiB.
	MaxKept int
	// MaxEvent bounds one event of a stream; a longer one is not read. Default 1 MiB.
	MaxEvent int
	// MaxAnswer bounds a whole answer that is not streamed; a longer one is not read. Default 4 MiB.
	MaxAnswer int
	// Remember bounds the bytes of bodies that are remembered, so that one that begins like an earlier one is read on from
	// there. Default 0: none.
	Remember int
}

// Dialect implements dialect.Dialect. Make one with New.
type Dialect struct {
	options Options
	fields  *field
	memory  memory
	scratch sync.Pool // of *splitter: what Split and digest work with, so that a body costs a handful of allocations
}

var _ dialect.Dialect = (*Dialect)(nil)

// New makes the dialect.
func New(o Options) *Dialect {
	o.MaxKept = fallback(o.MaxKept, 256<<10)
	o.MaxEvent = fallback(o.MaxEvent, 1<<20)
	o.MaxAnswer = fallback(o.MaxAnswer, 4<<20)
	return &Dialect{options: o, fields: newFields(o.Fields), memory: memory{limit: o.Remember}}
}

func fallback(n, standard int) int {
	if n <= 0 {
		return standard
	}
	return n
}

// Name is "chat".
func (d *Dialect) Name() string { return "chat" }

// Note writes a user message that carries text. What is not UTF-8 in it becomes U+FFFD.
func (d *Dialect) Note(text string) []byte {
	b := make([]byte, 0, len(text)+len(text)/16+64)
	b = append(b, `{"role":"user","content":`...)
	b = rawjson.AppendQuote(b, text)
	return append(b, '}')
}

// Split checks and slices a body. The error is a *dialect.Error.
func (d *Dialect) Split(body []byte) (*dialect.Request, error) {
	w, _ := d.scratch.Get().(*splitter)
	if w == nil {
		w = newSplitter()
	}
	defer d.release(w)
	w.begin(d, body)
	if b, known := d.memory.find(body); b != nil {
		w.resume(b, known)
	}
	if err := w.body(); err != nil {
		return nil, err
	}
	return w.request(), nil
}

func (d *Dialect) release(w *splitter) {
	w.reset()
	d.scratch.Put(w)
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
