package split

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Walker goes over one body. Its slices are kept for the next one.
type Walker struct {
	of     *Splitter
	format *Format
	text   []byte
	scan   rawjson.Scanner
	reader Reader
	digest Digest
	odd    string // why the body is no conversation, empty if it is one
	name   [256]byte
	index  int // of the element being read, -1 outside

	list   rawjson.Value
	inside dialect.Span
	top    members
	before members // the part of top that stands in front of the list
	past   past    // what was known of the body already
	fresh  fresh
}

// members are values at the top level of a body.
type members struct {
	read   []rawjson.Value // those of Format.Members
	fields []rawjson.Value // those of Splitter.fields, by number
}

// fresh are the messages of a body but those of the past.
type fresh struct {
	messages []session.Message
	ends     []endOf // of each of them
	refs     []ref   // of each of them
	ids      ids
}

func (m *members) copy(from *members) {
	m.read, m.fields = append(m.read[:0], from.read...), append(m.fields[:0], from.fields...)
}

// endOf is where a message ends: its own text, and the element of the list that it stands in.
type endOf struct {
	raw     int
	element int // 0: the element has more messages
	index   int // of the element
}

// Place is an object whose known keys have a slot each.
type Place interface {
	// Slot is where the value of a known key goes, nil for other keys.
	Slot(name []byte) *rawjson.Value
}

func newWalker(f *Format) *Walker {
	w := &Walker{format: f, digest: newDigest(f), top: members{read: make([]rawjson.Value, len(f.Members))}}
	w.reader = f.Reader(w)
	return w
}

func (w *Walker) begin(s *Splitter, text []byte) {
	w.of, w.text, w.index = s, text, -1
	w.scan = rawjson.NewScanner(text, s.options.MaxDepth)
	w.top.fields = append(w.top.fields[:0], make([]rawjson.Value, s.fields.count)...)
}

// resume reads on behind the first messages of a body that began in the same way.
func (w *Walker) resume(b *beginning, known int) {
	last := b.ends[known-1]
	w.past = past{b, known}
	w.inside.From, w.index = b.inside, last.index
	w.list.Kind = rawjson.Array
	copy(w.top.read, b.top.read)
	copy(w.top.fields, b.top.fields)
	w.scan = rawjson.Resume(w.text, w.of.options.MaxDepth, rawjson.Spot{Offset: last.element, Open: openAtMessages})
}

// openAtMessages is how many containers are open between two messages: the body and their array.
const openAtMessages = 2

// reset forgets the body, and scratch that grew too large to keep.
func (w *Walker) reset() {
	w.of, w.text, w.scan, w.odd = nil, nil, rawjson.Scanner{}, ""
	w.list, w.past, w.inside = rawjson.Value{}, past{}, dialect.Span{}
	w.reader.Reset()
	w.digest.reset()
	for _, m := range [...]members{w.top, w.before} {
		clear(m.read)
		clear(m.fields)
	}
	w.fresh.reset()
}

func (f *fresh) reset() {
	clear(f.messages)
	f.messages, f.refs, f.ends = Recycle(f.messages, maxItems), Recycle(f.refs, maxItems), Recycle(f.ends, maxItems)
	f.ids.reset()
}

// What pooled scratch may hold on to.
const (
	maxItems = 8 << 10
	maxBytes = 1 << 20
)

// maxMessages is how many messages are understood of one body at most, so that it takes memory in proportion to its size. A
// body with more is passed on unchanged.
const maxMessages = 64 << 10

// Recycle empties scratch, or gives nil where it has grown too large to keep.
func Recycle[T any](s []T, most int) []T {
	if cap(s) > most {
		return nil
	}
	return s[:0]
}

// body reads it all. The text is checked to its end before anything is said about its meaning.
func (w *Walker) body() error {
	if err := w.read(); err != nil {
		return err
	}
	if err := w.scan.End(); err != nil {
		return unsound(err)
	}
	if w.odd == "" && len(w.fresh.messages)+w.past.known == 0 {
		w.odd = "the body has no " + w.format.List
	}
	if w.odd != "" {
		return &dialect.Error{Code: dialect.CodeUnsupported, Param: w.format.List, Message: w.odd}
	}
	return nil
}

// read reads the body's object, from its beginning or from where it is known.
func (w *Walker) read() error {
	switch {
	case w.past.of != nil:
		if err := w.rest(); err != nil {
			return err
		}
	case !w.scan.Object():
		w.odd = "the body is not a JSON object"
		return nil
	}
	return w.Object(w, "")
}

// Odd says why the body is no conversation. It is read to its end nevertheless.
func (w *Walker) Odd(why string) { w.odd = why }

// Failed reports whether there is no use in looking further into the body: it is odd or unsound.
func (w *Walker) Failed() bool { return w.odd != "" || w.scan.Err() != nil }

// Digest makes the digest of a message.
func (w *Walker) Digest() *Digest { return &w.digest }

// Enter goes into the object in front of the walker, if there is one.
func (w *Walker) Enter() bool { return w.scan.Object() }

// Offset is where the walker stands in the body.
func (w *Walker) Offset() int { return w.scan.Offset() }

// Text is the body from there up to where the walker stands.
func (w *Walker) Text(from int) []byte { return w.text[from:w.scan.Offset():w.scan.Offset()] }

// Between is a part of the body.
func (w *Walker) Between(from, to int) []byte { return w.text[from:to:to] }

// Kind is what the value in front of the walker is.
func (w *Walker) Kind() rawjson.Kind { return w.scan.Kind() }

// Object reads the members of the object that was just entered into p. It is called at to the client.
func (w *Walker) Object(p Place, at string) error {
	for w.scan.Member() {
		key := w.scan.Key()
		name := key.Name(w.name[:0])
		slot := p.Slot(name)
		if slot == nil {
			if err := w.alike(name, p, at); err != nil {
				return err
			}
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
func (w *Walker) claim(key rawjson.Key, slot *rawjson.Value, at string) error {
	code, what := dialect.CodeDuplicateKey, "occurs twice; send it once"
	switch {
	case key.Escapes != rawjson.Plain:
		code, what = dialect.CodeEscapedKey, "is spelt with escapes; send it plain"
	case slot.Kind == 0:
		return nil
	}
	return w.refused(code, at+string(key.Name(w.name[:0])), what)
}

// alike refuses a key that is a known one to parsers that do not tell small letters from capitals, as Go's does not.
func (w *Walker) alike(name []byte, p Place, at string) error {
	if !slices.ContainsFunc(name, func(c byte) bool { return c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' }) {
		return nil
	}
	folded := bytes.ToLower(bytes.ToUpper(name))
	if bytes.Equal(folded, name) || p.Slot(folded) == nil {
		return nil
	}
	return w.refused(dialect.CodeDuplicateKey, at+string(name), "is a known key in other letters; send it in small ones")
}

func (w *Walker) refused(code, param, what string) error {
	if w.index >= 0 {
		param = fmt.Sprintf("%s[%d].%s", w.format.List, w.index, param)
	}
	return &dialect.Error{Code: code, Param: param, Message: fmt.Sprintf("The key %s %s.", param, what)}
}

// take reads the value for a slot.
func (w *Walker) take(slot *rawjson.Value) error {
	if slot == &w.list {
		return w.history()
	}
	if taken, err := w.reader.Take(slot); taken || err != nil {
		return err
	}
	*slot = w.scan.Value()
	return nil
}

// history reads the list of messages.
func (w *Walker) history() error {
	from := w.scan.Offset() + 1
	if !w.scan.Array() {
		w.list = w.scan.Value()
		w.inside = dialect.Span{From: from - 1, To: w.scan.Offset()}
		if w.list.Kind != rawjson.String || !w.reader.Text(w.list) {
			w.odd = w.format.List + " is not an array"
		}
		return nil
	}
	w.list.Kind = rawjson.Array
	w.inside.From = from
	w.before.copy(&w.top)
	return w.rest()
}

// rest reads what is left of the list.
func (w *Walker) rest() error {
	if err := w.elements(w.element); err != nil {
		return err
	}
	if !w.Failed() {
		w.reader.Close()
	}
	w.inside.To, w.index = w.scan.Offset()-1, -1
	return w.unambiguous()
}

// element reads one element of the list.
func (w *Walker) element() error {
	if w.index++; w.index >= maxMessages {
		w.odd = "there are too many " + w.format.List
	}
	filed := len(w.fresh.messages)
	if err := w.reader.Element(); err != nil {
		return err
	}
	if len(w.fresh.messages) > filed {
		w.fresh.ends[len(w.fresh.ends)-1].element = w.scan.Offset()
	}
	return w.unambiguous()
}

// unambiguous refuses a part of a content that was digested and says twice what it is.
func (w *Walker) unambiguous() error {
	if twice := w.digest.canon.twice; twice != "" {
		return w.refused(dialect.CodeDuplicateKey, "content[]."+twice, "occurs twice; send it once")
	}
	return nil
}

// Each reads an array, element by element; other values than null are odd.
func (w *Walker) Each(slot *rawjson.Value, read func() error, odd string) error {
	if !w.scan.Array() {
		if *slot = w.scan.Value(); slot.Kind != rawjson.Null {
			w.odd = odd
		}
		return nil
	}
	slot.Kind = rawjson.Array
	return w.elements(read)
}

// elements reads those of the array that was entered last.
func (w *Walker) elements(read func() error) error {
	for w.scan.Element() {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// Nested reads an object into p; other values than null are odd.
func (w *Walker) Nested(slot *rawjson.Value, p Place, at, odd string) error {
	if !w.scan.Object() {
		if *slot = w.scan.Value(); slot.Kind != rawjson.Null {
			w.odd = odd
		}
		return nil
	}
	slot.Kind = rawjson.Object
	return w.Object(p, at)
}

// Slot makes the walker the place for the top level: the history, the members that the dialect reads, the session fields.
func (w *Walker) Slot(name []byte) *rawjson.Value {
	if string(name) == w.format.List {
		return &w.list
	}
	for i, member := range w.format.Members {
		if string(name) == member {
			return &w.top.read[i]
		}
	}
	if f := w.of.fields.child(name); f != nil {
		return &w.top.fields[f.number]
	}
	return nil
}

// Member is the value of a member of the body, which Format.Members has.
func (w *Walker) Member(name string) rawjson.Value {
	return w.top.read[slices.Index(w.format.Members, name)]
}

// Before is a message that was filed before: 0 is the last one. It is nil where there are not so many.
func (w *Walker) Before(n int) *session.Message {
	if n < len(w.fresh.messages) {
		return &w.fresh.messages[len(w.fresh.messages)-1-n]
	}
	if n -= len(w.fresh.messages); n < w.past.known {
		return &w.past.of.messages[w.past.known-1-n]
	}
	return nil
}

// File adds a message whose raw text ends at an offset of the body, the ids of the calls that it makes, and that of the call
// which it answers.
func (w *Walker) File(m session.Message, end int, calls []rawjson.Value, result rawjson.Value) {
	r := ref{from: len(w.fresh.ids.spans), result: w.fresh.ids.add(result)}
	for _, id := range calls {
		w.fresh.ids.spans = append(w.fresh.ids.spans, w.fresh.ids.add(id))
	}
	r.to = len(w.fresh.ids.spans)
	if len(w.fresh.messages) >= maxMessages {
		w.odd = "there are too many " + w.format.List
		return
	}
	w.fresh.messages, w.fresh.refs = append(w.fresh.messages, m), append(w.fresh.refs, r)
	w.fresh.ends = append(w.fresh.ends, endOf{raw: end, index: w.index})
}
