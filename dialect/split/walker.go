package split

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Walker reads one body from its beginning to its end.
type Walker struct {
	splitter    *Splitter
	text        []byte
	scan        rawjson.Scanner
	reader      Reader
	Digest      Digest // of the messages, one after another
	unsupported string // why the body is not a conversation, or empty

	members []rawjson.Value // the values of Splitter.keys
	list    dialect.Span    // between the brackets of the history list

	index   int    // of the current element of the list, or -1
	start   int    // where the current element begins
	element Object // the current element
	nested  Object // the current object of EachObject

	resumption
	Messages []session.Message // read so far; only Add adds to it
	ends     []messageEnd      // of each message
}

// resumption is the remembered prefix from which a Walker continues.
type resumption struct {
	base    *prefix // nil if there is none
	known   int     // number of messages taken from base
	extends bool    // the walker may use the spare capacity of base
}

// messageEnd says where a message ends: its raw text, and the list element that contains it.
type messageEnd struct {
	raw     int
	element int // 0 if reading cannot continue here: the element contains more messages, or is not complete yet
	index   int // of the element
}

// maxMessages bounds the messages read from one body, so that memory stays in proportion to the size of the body. A body
// with more messages is forwarded unchanged.
const maxMessages = 64 << 10

// openInList is the number of containers that are open between two elements of the list: the body and the list.
const openInList = 2

func newWalker(s *Splitter, body []byte) *Walker {
	w := &Walker{
		splitter: s, text: body, scan: rawjson.NewScanner(body, rawjson.DefaultDepth),
		index: -1, members: make([]rawjson.Value, len(s.keys)),
	}
	w.Digest.canon.format = &s.format
	w.reader = s.format.Reader(w)
	return w
}

// readBody reads the whole body. Invalid JSON is reported before anything else, wherever it occurs.
func (w *Walker) readBody() error {
	if !w.scan.Object() {
		w.Unsupported("the body is not a JSON object")
	} else if err := w.readMembers(); err != nil {
		return err
	}
	if err := w.scan.End(); err != nil {
		return invalid(err)
	}
	if len(w.Messages) == 0 && w.kept() == (session.Kept{}) {
		w.Unsupported("the body has no " + w.splitter.format.List)
	}
	if w.unsupported != "" {
		return &dialect.Error{Code: dialect.CodeUnsupported, Param: w.splitter.format.List, Message: w.unsupported}
	}
	return nil
}

// kept returns where upstream stores the history that precedes the body's.
func (w *Walker) kept() (k session.Kept) {
	if read := w.splitter.format.Kept; read != nil {
		k = read(w.Member)
	}
	return k
}

func (w *Walker) readMembers() error {
	for w.scan.Member() {
		i, err := w.find(w.scan.Key(), w.splitter.keys, w.members, "")
		if err == nil && i == 0 {
			err = w.readHistory(&w.members[0])
		}
		if err != nil {
			return err
		}
		if i > 0 {
			w.members[i] = w.scan.Value()
		}
	}
	return nil
}

// Unsupported records why the body is not a conversation, unless a reason is known already. The rest of the body is still
// validated.
func (w *Walker) Unsupported(reason string) { w.unsupported = cmp.Or(w.unsupported, reason) }

// IsUnsupported reports whether Unsupported was called.
func (w *Walker) IsUnsupported() bool { return w.unsupported != "" }

// ElementSpan returns the position in the body of the element being read.
func (w *Walker) ElementSpan() dialect.Span { return dialect.Span{From: w.start, To: w.scan.Offset()} }

// Slice returns a part of the body.
func (w *Walker) Slice(at dialect.Span) []byte { return w.text[at.From:at.To:at.To] }

// Member returns the value of a member of the body. Its name must be one of Format.Members.
func (w *Walker) Member(name string) rawjson.Value {
	return w.members[slices.Index(w.splitter.keys, name)]
}

// Object reads an object and rejects keys that other parsers might read differently. Errors name the object by path.
// A null or missing value gives an empty Object. Any other value makes the body unsupported, for the given reason.
func (w *Walker) Object(v rawjson.Value, keys []string, path, reason string) (o Object, err error) {
	o.keys = keys
	switch v.Kind {
	case 0, rawjson.Null:
	case rawjson.Object:
		s := rawjson.NewScanner(v.Raw, rawjson.MaxDepth)
		err = w.readObject(&s, v.Raw, &o, path)
	default:
		w.Unsupported(reason)
	}
	return o, err
}

// EachObject reads the elements of a list as Object does and calls take for each object, with its end offset in the text
// of the list. The Object is reused for the next element. An element of another kind makes the body unsupported.
func (w *Walker) EachObject(list rawjson.Value, keys []string, path, reason string, take func(o *Object, end int) error) error {
	s, o := rawjson.NewScanner(list.Raw, rawjson.MaxDepth), &w.nested
	for entered := s.Array(); entered && s.Element(); {
		if s.Kind() != rawjson.Object {
			w.Unsupported(reason)
			continue
		}
		*o = Object{keys: keys}
		if err := w.readObject(&s, list.Raw, o, path); err != nil {
			return err
		}
		if err := take(o, s.Offset()); err != nil {
			return err
		}
	}
	return nil
}

// readObject reads the next object of a text into o.
func (w *Walker) readObject(s *rawjson.Scanner, text []byte, o *Object, path string) error {
	start := s.Offset()
	for entered := s.Object(); entered && s.Member(); {
		i, err := w.find(s.Key(), o.keys, o.values[:], path)
		if err != nil {
			return err
		}
		if i >= 0 {
			o.values[i] = s.Value()
		} else {
			o.More = true
		}
	}
	if s.Err() == nil {
		o.Raw = text[start:s.Offset():s.Offset()]
	}
	return nil
}

// find returns the index of a key among keys, or -1. It rejects a known key that is repeated (some parsers take the first
// value, some the last), written with escapes (a filter that does not decode keys would miss it), or in another case.
func (w *Walker) find(key rawjson.Key, keys []string, values []rawjson.Value, path string) (int, error) {
	var buf [longestKey]byte
	name := key.Name(buf[:0])
	i := indexOf(keys, name)
	switch {
	case i < 0:
		return i, w.rejectOtherCase(name, keys, path)
	case key.Escapes != rawjson.Plain:
		return i, w.reject(dialect.CodeEscapedKey, path+string(name), "is written with escapes; send it without")
	case values[i].Kind != 0:
		return i, w.reject(dialect.CodeDuplicateKey, path+string(name), "occurs twice; send it once")
	}
	return i, nil
}

// rejectOtherCase rejects a key that a case-insensitive parser, such as Go's, takes for a known one.
func (w *Walker) rejectOtherCase(name []byte, keys []string, path string) error {
	if !slices.ContainsFunc(name, func(c byte) bool { return c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' }) {
		return nil
	}
	folded := bytes.ToLower(bytes.ToUpper(name))
	if bytes.Equal(folded, name) || indexOf(keys, folded) < 0 {
		return nil
	}
	return w.reject(dialect.CodeDuplicateKey, path+string(name), "differs from a known key only by case; send it in lower case")
}

func (w *Walker) reject(code, param, problem string) error {
	if w.index >= 0 {
		param = fmt.Sprintf("%s[%d].%s", w.splitter.format.List, w.index, param)
	}
	return &dialect.Error{Code: code, Param: param, Message: fmt.Sprintf("The key %s %s.", param, problem)}
}

// readHistory reads the member that holds the history. slot receives its kind, and its value if it is not a list.
func (w *Walker) readHistory(slot *rawjson.Value) error {
	start := w.scan.Offset()
	if w.scan.Kind() == rawjson.Object && w.reader.Text != nil {
		return w.readLoneElement(slot)
	}
	if !w.scan.Array() {
		*slot = w.scan.Value()
		w.list = dialect.Span{From: start, To: w.scan.Offset()}
		w.start = start
		if slot.Kind == rawjson.String && w.reader.Text != nil {
			w.reader.Text(*slot)
		} else {
			w.Unsupported(w.splitter.format.List + " is not an array")
		}
		return nil
	}
	slot.Kind = rawjson.Array
	w.resume()
	for w.scan.Element() {
		if err := w.readElement(); err != nil {
			return err
		}
	}
	if w.unsupported == "" && w.scan.Err() == nil && w.reader.Close != nil {
		w.reader.Close()
	}
	w.list = dialect.Span{From: start + 1, To: w.scan.Offset() - 1}
	w.index = -1
	return w.rejectAmbiguousPart()
}

// readLoneElement reads a history that is one element instead of a list.
func (w *Walker) readLoneElement(slot *rawjson.Value) error {
	slot.Kind = rawjson.Object
	if err := w.readElement(); err != nil {
		return err
	}
	if w.unsupported == "" && w.scan.Err() == nil && w.reader.Close != nil {
		w.reader.Close()
	}
	w.list = w.ElementSpan()
	w.index = -1
	w.ends = nil // such a body is not remembered: no other one continues it
	return w.rejectAmbiguousPart()
}

// resume continues from a remembered prefix of the body, if there is one.
func (w *Walker) resume() {
	base, known := w.splitter.memory.find(w.text)
	if base == nil {
		return
	}
	w.base, w.known = base, known
	if known == len(base.messages) && base.extended.CompareAndSwap(false, true) {
		w.extends = true
		w.Messages, w.ends = base.messages, base.ends
	} else {
		w.Messages, w.ends = slices.Clip(base.messages[:known]), slices.Clip(base.ends[:known])
	}
	last := base.ends[known-1]
	w.index = last.index
	w.scan = rawjson.Resume(w.text, rawjson.DefaultDepth, last.element, openInList)
}

// readElement reads one element of the list.
func (w *Walker) readElement() error {
	w.index++
	if w.index >= maxMessages {
		w.tooMany()
	}
	w.start = w.scan.Offset()
	if w.scan.Kind() != rawjson.Object {
		if w.scan.Value().Kind != 0 { // otherwise the scanner reports invalid JSON
			w.Unsupported(w.splitter.format.Element + " is not an object")
		}
		return nil
	}
	o := &w.element
	*o = Object{keys: w.reader.Keys}
	if err := w.readObject(&w.scan, w.text, o, ""); err != nil || w.scan.Err() != nil {
		return err
	}
	before := len(w.Messages)
	if err := w.reader.Element(o); err != nil {
		return err
	}
	if len(w.Messages) > before {
		// If the text of the last message ends before this element, it is an earlier message, which the reader adds only now.
		if last := &w.ends[len(w.ends)-1]; last.raw > w.start {
			last.element = w.scan.Offset()
		}
	}
	return w.rejectAmbiguousPart()
}

// rejectAmbiguousPart rejects a digested content part that states its type or text twice.
func (w *Walker) rejectAmbiguousPart() error {
	if key := w.Digest.canon.duplicate; key != "" {
		return w.reject(dialect.CodeDuplicateKey, "content[]."+key, "occurs twice; send it once")
	}
	return nil
}

// Add adds a message whose raw text ends at an offset of the body.
func (w *Walker) Add(m session.Message, end int) {
	if len(w.Messages) >= maxMessages {
		w.tooMany()
	}
	if m.Kind == session.System {
		m.Note = noteOf(m.Raw)
	}
	if w.unsupported == "" {
		if n := len(w.Messages); n == cap(w.Messages) && w.base == nil {
			w.Messages = slices.Grow(w.Messages, w.expected(end))
			w.ends = slices.Grow(w.ends, cap(w.Messages)-n)
		}
		w.Messages = append(w.Messages, m)
		w.ends = append(w.ends, messageEnd{raw: end, index: w.index})
	}
}

// maxNote is the longest system message that may be a note, in bytes.
const maxNote = 512

// noteOf returns the kind of a system message that the next one of the same kind replaces (see session.Message.Note), 0 for any other.
func noteOf(raw []byte) uint8 {
	if len(raw) > maxNote {
		return 0
	}
	for i, name := range agents.ReplacedNotes() {
		if bytes.Contains(raw, []byte(`"<`+name+`>`)) || bytes.Contains(raw, []byte(`"\u003c`+name+`\u003e`)) {
			return uint8(i + 1)
		}
	}
	return 0
}

// expected estimates how many more messages follow an offset of the body, assuming that they are about as long as those before it. The
// estimate is bounded by about four times the number of messages so far.
func (w *Walker) expected(offset int) int {
	n := len(w.Messages)
	if n == 0 {
		return 16
	}
	return min(n*(len(w.text)-offset)/offset+n/4, 4*n) + 1
}

func (w *Walker) tooMany() { w.Unsupported("there are too many " + w.splitter.format.List) }
