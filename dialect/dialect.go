// Package dialect is the contract between the proxy and a wire protocol: how to split a request body into messages, how
// to read and write one message, and how to read an answer while it is relayed. Each protocol is a package below it.
package dialect

import (
	"fmt"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Dialect is one wire protocol. Its methods may be called concurrently.
type Dialect interface {
	// Name is the protocol's name in logs and metrics.
	Name() string
	// Split checks a request body and slices it. What it returns aliases the body. A body that cannot be trusted gives an
	// *Error.
	Split(body []byte) (*Request, error)
	// Read decodes one message's content.
	Read(raw []byte) (session.Content, error)
	// Note writes a user message that carries text.
	Note(text string) []byte
	// Reply writes an assistant message that carries text.
	Reply(text string) []byte
	// Merge gives the first of two messages of one role with the content of the second behind its own.
	Merge(first, second []byte) ([]byte, error)
	// Rewrite gives a message with another text in the place of its content; everything else of it stays, byte for byte.
	Rewrite(raw []byte, text string) ([]byte, error)
	// StripReasoning gives a message without the sealed reasoning that its provider bound to what stood before it; everything
	// else of it stays.
	StripReasoning(raw []byte) ([]byte, error)
	// Join gives a request's body with other messages in the place of its own, as parts to be written one after another.
	// Everything else stays as the client wrote it.
	Join(r *Request, messages [][]byte) [][]byte
	// Compose makes a body that has these messages and nothing else: what Split gives of it are they.
	Compose(messages [][]byte) []byte
	// Failure writes an error of the proxy's own.
	Failure(f Failure) []byte
	// Event writes an error, which is one line of JSON, as an event of a stream.
	Event(failure []byte) []byte
	// Key gives the header in which the protocol sends a key.
	Key(key string) (name, value string)
	// Tee begins to read an answer.
	Tee(streamed bool) Tee

	Keeper
	Reuser
	Hider
}

// Request is a body, sliced.
type Request struct {
	Body      []byte
	Messages  []session.Message
	Inside    Span   // what stands between the brackets of the message array
	Model     string //
	Stream    bool
	MaxOutput int               // tokens the client allows for the answer, 0 if it does not say
	Tools     []byte            // the raw tool definitions, nil if none
	Fields    map[string]string // the session fields found, by their path

	Kept   session.Kept // where upstream keeps what came before the messages
	Stores bool         // upstream keeps the answer, so that a later request may go on from it

	outside []byte // what goes upstream outside the list, where text was spliced into it,
	front   int    // of which so much stands before the list

	// NeedsReasoning says that the model takes an open tool loop only with the reasoning in it: Anthropic's manual thinking.
	NeedsReasoning bool
}

// Unbinder is a Dialect whose servers can be asked to drop reasoning that is bound to a history which is not there any more, where they
// take a message only with its reasoning.
type Unbinder interface {
	// Unbind gives a request that asks for that. What the client says about it stays.
	Unbind(r *Request) *Request
	// Unbinding gives the header that the request needs then, with a value for a list of them.
	Unbinding() (name, value string)
}

// Marker is a Dialect whose servers cache a prefix up to where the client marks its end.
type Marker interface {
	// Mark gives the message at a place, which Note wrote, with such a mark, if the client uses any and one more is allowed.
	Mark(r *Request, messages [][]byte, at int) []byte
}

// Keeper is the part of a Dialect in which clients say how long a prefix is to be kept in the prompt cache.
type Keeper interface {
	// Keeps is for how long a body asks; 0: it does not say.
	Keeps(body []byte) time.Duration
}

// Reuser is the part of a Dialect that makes requests calls of the proxy's own.
type Reuser interface {
	// Reuse gives a body whose prompt is the same for upstream's cache, and whose answer is a streamed text that may have that many tokens;
	// nil: there is none. Where the cache goes by them, tools may be called all the same.
	Reuse(body []byte, output int) []byte
	// Touch is Reuse for an answer of as few tokens as can be.
	Touch(body []byte) []byte
}

// Opener is a Dialect whose streams begin with events that say nothing of the answer yet, not even whether there will be one.
type Opener interface {
	// Opening reports whether an event, whole, is such.
	Opening(event []byte) bool
}

// Compactor is a Dialect in which clients have upstream put their history into one item.
type Compactor interface {
	// Concerns reports whether a body may have anything to do with that: whether it asks for it, or holds such an item. Few do.
	Concerns(body []byte) bool
	// Compacts reports whether a body asks for that, and names its model. byPath says that its path does.
	Compacts(body []byte, byPath bool) (model string, asks bool)
	// Compacted reports whether an answer, whole or streamed, gives such an item.
	Compacted(answer []byte) bool
	// Ask gives a body that asks for that with a question to the model in its place, whose answer is text in one piece, and reports
	// whether the client wants its answer streamed.
	Ask(body []byte, question string) (asked []byte, streamed bool)
	// Compaction writes an answer with one item.
	Compaction(c Compaction) []byte
	// Manages takes what asks upstream to manage the history by itself out of a body.
	Manages(body []byte) Managed
	// Unseal gives a body with a message of the user in the place of each item whose content begins with a mark: with the text that
	// open gives. An error of open's ends it. Where the protocol has clients send what a compaction stands for, that is left out.
	Unseal(body []byte, mark string, open func(sealed string) (text string, err error)) ([]byte, error)
}

// Managed is a body without what asks upstream to manage the history by itself. The zero value is a body that does not ask.
type Managed struct {
	Rest  []byte
	Model string
	Limit int // above so many tokens of input the history is to be compacted; 0: at no number

	Pauses       bool   // the compaction is to be the whole answer then
	Instructions string // for what is to stand in it then
}

// Compaction is a history as one item.
type Compaction struct {
	ID       string // of the answer and the item
	Model    string
	Sealed   string // what the item holds
	Usage    *session.Usage
	Streamed bool
	Alone    bool // the answer of a path that gives nothing else
}

// Span is the bytes From to To-1 of a body.
type Span struct{ From, To int }

// Join gives the body with other elements in the place of its list's, as parts to be written one after another.
func (r *Request) Join(elements [][]byte) [][]byte {
	parts := append(make([][]byte, 0, 2*len(elements)+2), r.Before())
	for i, e := range elements {
		if i > 0 {
			parts = append(parts, comma)
		}
		parts = append(parts, e)
	}
	return append(parts, r.After())
}

var comma = []byte{','}

// Before is what stands before the elements of the body's list.
func (r *Request) Before() []byte {
	if r.outside != nil {
		return r.outside[:r.front]
	}
	return r.Body[:r.Inside.From]
}

// After is what stands behind them.
func (r *Request) After() []byte {
	if r.outside != nil {
		return r.outside[r.front:]
	}
	return r.Body[r.Inside.To:]
}

// Outside is the body with an empty list.
func (r *Request) Outside() []byte { return slices.Concat(r.Before(), r.After()) }

// Splice gives a request with text put into what stands outside the list, at an offset of Outside.
func (r *Request) Splice(at int, text []byte) *Request {
	out := *r
	out.front, out.outside = len(r.Before()), slices.Insert(r.Outside(), at, text...)
	if at <= out.front {
		out.front += len(text)
	}
	return &out
}

// Tee reads an answer as it passes. It keeps a bounded amount of it and never fails: what it cannot read it does not
// report. It is used by one goroutine.
type Tee interface {
	// Write takes the next bytes of the answer.
	Write(p []byte)
	// Ended reports whether the answer's own end mark has passed (for a stream), or a whole body.
	Ended() bool
	// Answer is what was learnt so far.
	Answer() Answer
}

// Answer is what a model answered.
type Answer struct {
	Text   string // bounded; empty if longer than the bound
	Calls  []session.Call
	Usage  *session.Usage // nil if upstream did not report it
	Finish string

	ID          string   // under which upstream may keep it; empty: the protocol has none
	Said        []byte   // as a message of a history; nil: it is too long, or that is not asked for in the protocol
	Compactions []string // what split.Mark gives of each compaction in it
}

// Codes of an Error that says what is wrong with a body. All but CodeUnsupported are refusals.
const (
	CodeInvalidJSON  = "invalid_json"
	CodeInvalidUTF8  = "invalid_utf8"
	CodeTooDeep      = "too_deep"
	CodeDuplicateKey = "duplicate_key"
	CodeEscapedKey   = "escaped_key"
	// CodeUnsupported: the body is sound, but the dialect cannot read it as a history. It is passed on unchanged; upstream judges it.
	CodeUnsupported = "unsupported"
)

// Error is a request that the dialect refuses. Code and Message are for the client.
type Error struct {
	Code    string // stable: invalid_json, duplicate_key, invalid_request, too_deep, ...
	Param   string // the key it concerns, empty if none
	Message string // what is wrong and what to do
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }
