// Package dialect defines the contract between the proxy and a wire protocol: splitting a request body into messages,
// reading and writing one message, joining messages into a body, and reading an answer while it is relayed.
// Each protocol is implemented in a package below this one.
package dialect

import (
	"fmt"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Dialect is one wire protocol. Its methods are safe for concurrent use.
type Dialect interface {
	// Name returns the protocol's name in logs and metrics.
	Name() string
	// Split validates a request body and slices it into messages. The result aliases the body. target is the path below the base URL, with the
	// query if there is one; it is empty if the body was not sent anywhere. A protocol whose requests name the model there, or whether the
	// answer is streamed, takes that from it. The error is an *Error.
	Split(target string, body []byte) (*Request, error)
	// Read decodes the content of one message.
	Read(raw []byte) (session.Content, error)
	// Note encodes text as a user message.
	Note(text string) []byte
	// Reply encodes text as an assistant message.
	Reply(text string) []byte
	// Merge appends the content of second to first. Both must have the same role.
	Merge(first, second []byte) ([]byte, error)
	// Rewrite replaces the content of a message with text. The rest of the message stays byte for byte.
	Rewrite(raw []byte, text string) ([]byte, error)
	// StripReasoning removes sealed reasoning that its provider bound to the preceding messages. The rest of the message
	// stays unchanged.
	StripReasoning(raw []byte) ([]byte, error)
	// Join replaces the messages of a request and returns the body in parts, to be written one after another.
	// The rest of the body stays as the client wrote it.
	Join(r *Request, messages [][]byte) [][]byte
	// Compose returns a body with these messages and nothing else. Split of that body returns the same messages.
	Compose(messages [][]byte) []byte
	// Failure encodes one of the proxy's own errors.
	Failure(f Failure) []byte
	// Event wraps an encoded failure, a single line of JSON, in a stream event.
	Event(failure []byte) []byte
	// Key returns the header in which the protocol sends an API key.
	Key(key string) (name, value string)
	// CacheTTL returns how long a request body asks upstream to keep its prefix in the prompt cache, or 0 if it does not say.
	CacheTTL(body []byte) time.Duration
	// Opening reports whether a complete event of a stream only opens the stream and does not show yet whether there will be an answer.
	Opening(event []byte) bool
	// Tee returns a reader for one answer.
	Tee(streamed bool) Tee
	// Reuse turns a body into a call of the proxy's own with the same cached prompt, whose answer is streamed text of up to
	// output tokens. It returns nil if that is impossible. Where tool_choice is part of the cache key, the model may still
	// call tools.
	Reuse(body []byte, output int) []byte

	Hider
	Asker
}

// Request is a request body sliced into messages.
type Request struct {
	Body      []byte
	Messages  []session.Message
	ListSpan  Span // between the brackets of the message list
	Model     string
	Stream    bool              // the answer is streamed as server-sent events
	Pieces    bool              // it is streamed as a JSON list
	MaxOutput int               // tokens that the client allows for the answer, or 0 if it does not say
	LimitedBy string            // the parameter that says so, where a protocol has several; empty: none, or the only one
	Choices   int               // answers that the client asks for, each up to MaxOutput; 0 means one
	Tools     []byte            // the raw tool definitions, or nil
	Fields    map[string]string // the session fields found, by path

	DefinesTools bool // the history defines tools

	Kept   session.Kept // the history that upstream stores, preceding Messages
	Stores bool         // upstream stores the answer, so that a later request can refer to it

	// NeedsReasoning reports that the model accepts an open tool loop only together with its reasoning, as Anthropic's
	// manual thinking does.
	NeedsReasoning bool

	outside []byte // if not nil, replaces the bytes of Body around the list
	front   int    // length of the part of outside that precedes the list
}

// Referrer is a Dialect in which a message may refer to items of earlier answers, which upstream stores. If such a Dialect knows an item,
// Read reads the item in place of the reference.
type Referrer interface {
	// Items returns the items that have an id, by id. said is Answer.Said or a resolved message; the items alias it.
	Items(said []byte) map[string][]byte
	// WithItems returns a copy of the Dialect that knows these items, by their ids. The map must not be changed any more.
	WithItems(items map[string][]byte) Dialect
	// Resolve returns a message with the known items in place of the references to them, or nil if it refers to no known item.
	Resolve(raw []byte) []byte
}

// Keeper is a Dialect in which a request may refer to a history that upstream stores, and can be sent with that history instead.
type Keeper interface {
	// WithHistory returns the request with earlier messages in front of its own, and without the id of the answer that it continues. It returns
	// nil if the request cannot do without what upstream stores, or has no list of messages. Kept stays as it is.
	WithHistory(r *Request, earlier []session.Message) *Request
}

// Unbinder is a Dialect whose servers reject a message without its reasoning, but can be asked to drop reasoning that is
// bound to a history which has changed.
type Unbinder interface {
	// Unbind returns a request that asks upstream to drop such reasoning. If the client has already set the option, it returns r.
	Unbind(r *Request) *Request
	// UnbindHeader returns the header that such a request needs. The value is one element of a comma-separated list.
	UnbindHeader() (name, value string)
}

// Marker is a Dialect whose servers cache a prefix up to a mark set by the client.
type Marker interface {
	// Mark returns messages[at], which must begin with a text that Note wrote. If the client uses cache marks and the limit allows another
	// one, it adds a mark to that text.
	Mark(r *Request, messages [][]byte, at int) []byte
	// Blocks returns how many blocks of content a message has. A server looks for a cached prefix only a number of blocks before a mark.
	Blocks(message []byte) int
}

// Compactor is a Dialect in which clients can ask upstream to compact their history into one item.
type Compactor interface {
	// RequestsCompaction reports whether a body requests a compaction, and returns its model. byPath is set if the URL path
	// requests one.
	RequestsCompaction(body []byte, byPath bool) (model string, asks bool)
	// HasCompaction reports whether an answer, streamed or not, contains a compaction.
	HasCompaction(answer []byte) bool
	// Ask replaces a compaction request with a question to the model, to be answered as text and without streaming.
	// It also reports whether the client asked for a stream.
	Ask(body []byte, question string) (asked []byte, streamed bool)
	// Compaction encodes an answer that contains one compaction.
	Compaction(c Compaction) []byte
	// StripManagement removes the option that makes upstream manage the history.
	StripManagement(body []byte) ContextManagement
	// Unseal replaces each compaction whose content starts with mark by a user message with the text that open returns. It returns an
	// error of open unchanged. If clients of the protocol resend the history that a compaction replaces, Unseal removes that history.
	Unseal(body []byte, mark string, open func(sealed string) (text string, err error)) ([]byte, error)
}

// ContextManagement describes how a client asked upstream to manage the history. The zero value means that it did not ask.
type ContextManagement struct {
	Rest  []byte // the body without the option
	Model string
	Limit int // input tokens above which to compact, or 0 if not given

	Pauses       bool   // the answer ends after the compaction
	Instructions string // what the compaction should contain
}

// Compaction is a history compacted into one item.
type Compaction struct {
	ID       string // of the answer and the item
	Model    string
	Sealed   string // content of the item
	Usage    *session.Usage
	Streamed bool
	ByPath   bool // the URL path requested it: the answer has the form of that endpoint
}

// Span is the half-open byte range [From, To) of a body.
type Span struct{ From, To int }

// Join replaces the elements of the request's list. It returns the body in parts, to be written one after another.
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

// Before returns the part of the body that precedes the elements of the list.
func (r *Request) Before() []byte {
	if r.outside != nil {
		return r.outside[:r.front]
	}
	return r.Body[:r.ListSpan.From]
}

// After returns the part of the body that follows the elements of the list.
func (r *Request) After() []byte {
	if r.outside != nil {
		return r.outside[r.front:]
	}
	return r.Body[r.ListSpan.To:]
}

// Outside returns a copy of the body with an empty list.
func (r *Request) Outside() []byte { return slices.Concat(r.Before(), r.After()) }

// Splice returns a copy of the request with text inserted at an offset of Outside.
func (r *Request) Splice(at int, text []byte) *Request {
	return r.Replace(Span{From: at, To: at}, text)
}

// Replace returns a copy of the request with text in place of a part of Outside. The part must not contain the list.
func (r *Request) Replace(part Span, text []byte) *Request {
	out := *r
	out.front = len(r.Before())
	out.outside = slices.Replace(r.Outside(), part.From, part.To, text...)
	if part.To <= out.front {
		out.front += len(text) - (part.To - part.From)
	}
	return &out
}

// Tee reads an answer while it is relayed. It keeps a bounded amount of it and never fails: it skips what it cannot read.
// It is not safe for concurrent use.
type Tee interface {
	// Write takes the next bytes of the answer.
	Write(p []byte)
	// Ended reports whether the answer is complete: the end mark of a stream, or a whole body, has been seen.
	Ended() bool
	// Failed reports whether the answer reports an error, as far as it was read.
	Failed() bool
	// Answer returns what has been read so far. It copies the text.
	Answer() Answer
}

// Answer is a model's answer.
type Answer struct {
	Text   string // empty if it exceeds the limit
	Lost   bool   // the text, or the arguments of a call, exceeded the limit
	Wrote  int    // bytes that the model wrote: text, reasoning and arguments, and the text of further choices
	Calls  []session.Call
	Usage  *session.Usage // nil if upstream did not report it
	Finish string

	Refusal string // beginning of the model's refusal, empty if none; in some protocols it is also in Text
	Ran     bool   // the provider ran a tool of its own
	Failed  bool   // it reports an error
	Code    string // of the error; empty if it has none
	Status  int    // HTTP status of the error, from 400 to 599; 0 if the error has neither a status nor a code that implies one
	Garbled bool   // an event of the stream could not be read

	ID          string   // under which upstream may store it; empty if the protocol has no ids
	Said        []byte   // the answer as a message of a history; nil if it is too long or the protocol does not need it
	Whole       bool     // Said is all that upstream stores of it, and can be sent in its place
	Compactions []string // split.CompactionID of each compaction in it
}

// Codes of an Error. All but CodeUnsupported mean that the body is rejected.
const (
	CodeInvalidJSON  = "invalid_json"
	CodeInvalidUTF8  = "invalid_utf8"
	CodeTooDeep      = "too_deep"
	CodeDuplicateKey = "duplicate_key"
	CodeEscapedKey   = "escaped_key"
	// CodeUnsupported means that the body is valid JSON, but not a history that the dialect understands. It is forwarded
	// unchanged, and upstream decides.
	CodeUnsupported = "unsupported"
)

// Error explains why a body was not split. All fields may be shown to the client.
type Error struct {
	Code    string // one of the codes above; stable
	Param   string // the key at fault, or empty
	Message string // what is wrong and what to do
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// Failure is an error of the proxy itself, sent to a client. Code is stable; Message says what to do.
type Failure struct {
	Status  int
	Type    string // as OpenAI names it
	Code    string
	Param   string // the key at fault, or empty
	Message string
}

// OpenAI encodes the failure in the format of OpenAI's errors.
func (f Failure) OpenAI() []byte {
	param := []byte("null")
	if f.Param != "" {
		param = rawjson.AppendQuote(nil, f.Param)
	}
	return fmt.Appendf(nil, `{"error":{"message":%s,"type":%s,"param":%s,"code":%s}}`,
		rawjson.AppendQuote(nil, f.Message), rawjson.AppendQuote(nil, f.Type), param, rawjson.AppendQuote(nil, f.Code))
}
