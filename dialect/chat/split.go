package chat

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// splitter goes over one body. Its slices are kept for the next one.
type splitter struct {
	d    *Dialect
	text []byte
	scan rawjson.Scanner
	odd  string // why the body is no conversation, empty if it is one
	name [256]byte

	top    top
	fields []rawjson.Value // of Dialect.fields, by number
	inside dialect.Span
	past   past // what was known of the body already

	before       top // what the body says in front of its messages
	fieldsBefore []rawjson.Value

	index    int // of the message being read, -1 outside
	msg      message
	call     call              // of msg, being read
	messages []session.Message // but those of the past
	ends     []int             // where each of them ends
	refs     []ref             // of messages
	ids      ids
	hash     hasher
}

// top is what is known at the top level of a body.
type top struct {
	messages, model, stream, maxTokens, maxCompletionTokens, tools, functions, thinking rawjson.Value
}

// place is an object whose known keys have a slot each.
type place interface {
	// slot is where the value of a known key goes, nil for other keys.
	slot(name []byte) *rawjson.Value
}

func newSplitter() *splitter { return &splitter{hash: newHasher()} }

func (w *splitter) begin(d *Dialect, text []byte) {
	w.d, w.text, w.index = d, text, -1
	w.scan = rawjson.NewScanner(text, d.options.MaxDepth)
	w.fields = append(w.fields[:0], make([]rawjson.Value, d.fields.count)...)
}

// resume reads on behind the first messages of a body that began in the same way.
func (w *splitter) resume(b *beginning, known int) {
	w.past = past{b, known}
	w.top, w.inside.From, w.index = b.top, b.inside, known-1
	copy(w.fields, b.fields)
	w.scan = rawjson.Resume(w.text, w.d.options.MaxDepth, rawjson.Spot{Offset: b.ends[known-1], Open: openAtMessages})
}

// openAtMessages is how many containers are open between two messages: the body and their array.
const openAtMessages = 2

// reset lets go of the body, and of scratch that grew too large to keep.
func (w *splitter) reset() {
	w.d, w.text, w.scan, w.odd = nil, nil, rawjson.Scanner{}, ""
	w.top, w.before, w.past, w.inside, w.call = top{}, top{}, past{}, dialect.Span{}, call{}
	w.msg.reset()
	clear(w.fields)
	clear(w.fieldsBefore)
	clear(w.messages)
	w.messages, w.refs, w.ends = recycle(w.messages, maxItems), recycle(w.refs, maxItems), recycle(w.ends, maxItems)
	w.msg.calls = recycle(w.msg.calls, maxItems)
	w.ids.reset()
	w.hash.reset()
}

// What pooled scratch may hold on to.
const (
	maxItems = 8 << 10
	maxBytes = 1 << 20
)

// What is understood of one body at most, so that it takes memory in proportion to its size. A body with more is passed
// on unchanged.
const (
	maxMessages = 64 << 10
	maxCalled   = 4 << 10 // calls of one message
)

func recycle[T any](s []T, most int) []T {
	if cap(s) > most {
		return nil
	}
	return s[:0]
}

// body reads it all. The text is checked to its end before anything is said about its meaning.
func (w *splitter) body() error {
	if err := w.read(); err != nil {
		return err
	}
	if err := w.scan.End(); err != nil {
		return unsound(err)
	}
	if w.odd == "" && len(w.messages)+w.past.known == 0 {
		w.odd = "the body has no messages"
	}
	if w.odd != "" {
		return &dialect.Error{Code: CodeUnsupported, Param: "messages", Message: w.odd}
	}
	return nil
}

// read reads the body's object, from its beginning or from where it is known.
func (w *splitter) read() error {
	switch {
	case w.past.of != nil:
		if err := w.elements(w.message); err != nil {
			return err
		}
		w.closeMessages()
	case !w.scan.Object():
		w.odd = "the body is not a JSON object"
		return nil
	}
	return w.object(w, "")
}

// object reads the members of the object that was just entered into p. It is called at to the client.
func (w *splitter) object(p place, at string) error {
	for w.scan.Member() {
		key := w.scan.Key()
		slot := p.slot(key.Name(w.name[:0]))
		if slot == nil {
			continue
		}
		if err := w.claim(key, slot, at); err != nil {
			return err
		}
		if err := w.take(slot); err != nil {
			return err
		}
	}
	return nil
}

// claim refuses a known key that other parsers could see differently: a second one (some take the first, some the last),
// or one spelt with escapes (which a filter that does not decode keys would miss).
func (w *splitter) claim(key rawjson.Key, slot *rawjson.Value, at string) error {
	code, what := CodeDuplicateKey, "occurs twice; send it once"
	switch {
	case key.Escapes != rawjson.Plain:
		code, what = CodeEscapedKey, "is spelt with escapes; send it plain"
	case slot.Kind == 0:
		return nil
	}
	param := at + string(key.Name(w.name[:0]))
	if w.index >= 0 {
		param = fmt.Sprintf("messages[%d].%s", w.index, param)
	}
	return &dialect.Error{Code: code, Param: param, Message: fmt.Sprintf("The key %s %s.", param, what)}
}

// take reads the value for a slot.
func (w *splitter) take(slot *rawjson.Value) error {
	switch slot {
	case &w.top.messages:
		return w.each(slot, w.message)
	case &w.msg.toolCalls:
		return w.each(slot, w.toolCall)
	case &w.msg.functionCall:
		return w.nested(slot, &w.msg.function, "function_call.")
	case &w.call.function:
		return w.nested(slot, &w.call.called, "tool_calls.function.")
	case &w.call.custom:
		return w.nested(slot, &w.call.input, "tool_calls.custom.")
	}
	*slot = w.scan.Value()
	return nil
}

// each reads an array, element by element.
func (w *splitter) each(slot *rawjson.Value, read func() error) error {
	from := w.scan.Offset() + 1
	if !w.scan.Array() {
		*slot = w.scan.Value()
		if slot == &w.top.messages || slot.Kind != rawjson.Null {
			w.odd = "messages or tool_calls is not an array"
		}
		return nil
	}
	slot.Kind = rawjson.Array
	if slot != &w.top.messages {
		return w.elements(read)
	}
	w.before, w.inside.From, w.fieldsBefore = w.top, from, append(w.fieldsBefore[:0], w.fields...)
	if err := w.elements(read); err != nil {
		return err
	}
	w.closeMessages()
	return nil
}

// elements reads those of the array that was entered last.
func (w *splitter) elements(read func() error) error {
	for w.scan.Element() {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

func (w *splitter) closeMessages() { w.inside.To, w.index = w.scan.Offset()-1, -1 }

// nested reads an object into p.
func (w *splitter) nested(slot *rawjson.Value, p place, at string) error {
	if !w.scan.Object() {
		if *slot = w.scan.Value(); slot.Kind != rawjson.Null {
			w.odd = "a tool call is not an object"
		}
		return nil
	}
	slot.Kind = rawjson.Object
	return w.object(p, at)
}

// slot makes the splitter the place for the top level: what is known there, and the session fields.
func (w *splitter) slot(name []byte) *rawjson.Value {
	if slot := w.top.slot(name); slot != nil {
		return slot
	}
	if f := w.d.fields.child(name); f != nil {
		return &w.fields[f.number]
	}
	return nil
}

func (t *top) slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "messages":
		return &t.messages
	case "model":
		return &t.model
	case "stream":
		return &t.stream
	case "max_tokens":
		return &t.maxTokens
	case "max_completion_tokens":
		return &t.maxCompletionTokens
	case "tools":
		return &t.tools
	case "functions":
		return &t.functions
	case "thinking":
		return &t.thinking
	}
	return nil
}

// request gives what was found. Nothing in it but slices of the body outlives the next use of the splitter.
func (w *splitter) request() *dialect.Request {
	r := &dialect.Request{
		Body:     w.text,
		Messages: w.handOver(),
		Inside:   w.inside,
		Model:    w.top.model.Text(),
		Stream:   w.top.stream.Kind == rawjson.True,
		Fields:   w.sessionFields(),

		NeedsReasoning: manual(w.top.thinking),
	}
	if r.MaxOutput = integer(w.top.maxCompletionTokens); r.MaxOutput == 0 {
		r.MaxOutput = integer(w.top.maxTokens)
	}
	for _, v := range []rawjson.Value{w.top.functions, w.top.tools} {
		if v.Kind == rawjson.Array {
			r.Tools = v.Raw
		}
	}
	return r
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

// handOver gives all messages away, linked, as nobody may change them.
func (w *splitter) handOver() []session.Message {
	w.link(w.messages)
	switch {
	case len(w.messages) == 0:
		return slices.Clip(w.past.messages())
	case w.d.memory.limit > 0 && len(w.text) >= minBegun:
		return w.remember(w.messages)
	case cap(w.messages) <= maxItems:
		return slices.Clone(w.messages)
	}
	messages := w.messages
	w.messages = nil
	return messages
}

// integer is a count, 0 if v is none.
func integer(v rawjson.Value) int {
	if v.Kind != rawjson.Number || len(v.Raw) > 18 {
		return 0
	}
	n, err := strconv.Atoi(string(v.Raw))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// unsound tells the client what is wrong with its JSON.
func unsound(err error) error {
	code := CodeInvalidJSON
	var defect *rawjson.Error
	if errors.As(err, &defect) {
		switch defect.Code {
		case rawjson.TooDeep:
			code = CodeTooDeep
		case rawjson.BadUTF8:
			code = CodeInvalidUTF8
		}
	}
	return &dialect.Error{Code: code, Message: fmt.Sprintf("The body is not sound JSON: %v.", err)}
}
