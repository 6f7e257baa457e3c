package split

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Walker goes over one body.
type Walker struct {
	of     *Splitter
	text   []byte
	scan   rawjson.Scanner
	reader Reader
	digest Digest
	odd    string // why the body is no conversation, empty if it is one

	top    []rawjson.Value // what the body has of Splitter.keys
	inside dialect.Span
	index  int // of the element being read, -1 outside
	from   int // where that begins
	now    Object
	inner  Object // the one that Each has come to

	prior
	messages []session.Message
	ends     []endOf // of each of them
}

// prior is what was known of a body before it was read.
type prior struct {
	past    *beginning // nil: nothing
	known   int        // messages of that
	extends bool       // the room behind them is ours
}

// endOf is where a message ends: its own text, and the element of the list that it stands in.
type endOf struct {
	raw     int
	element int // 0: nothing can be read on from there: the element has more messages, or is held back
	index   int // of the element
}

func newWalker(s *Splitter, body []byte) *Walker {
	w := &Walker{of: s, text: body, index: -1, top: make([]rawjson.Value, len(s.keys))}
	w.scan, w.digest.canon.format = rawjson.NewScanner(body, s.options.MaxDepth), &s.format
	w.reader = s.format.Reader(w)
	return w
}

// maxMessages is how many messages are understood of one body at most, so that it takes memory in proportion to its size. A
// body with more is passed on unchanged.
const maxMessages = 64 << 10

// body reads it all. The text is checked to its end before anything is said about its meaning.
func (w *Walker) body() error {
	if !w.scan.Object() {
		w.odd = "the body is not a JSON object"
	} else if err := w.members(); err != nil {
		return err
	}
	if err := w.scan.End(); err != nil {
		return unsound(err)
	}
	if w.odd == "" && len(w.messages) == 0 {
		w.odd = "the body has no " + w.of.format.List
	}
	if w.odd != "" {
		return &dialect.Error{Code: dialect.CodeUnsupported, Param: w.of.format.List, Message: w.odd}
	}
	return nil
}

// members reads those of the body.
func (w *Walker) members() error {
	for w.scan.Member() {
		i, err := w.claim(w.of.keys, w.top, w.scan.Key(), "")
		switch {
		case err != nil:
		case i == 0:
			err = w.history(&w.top[0])
		case i > 0:
			w.top[i] = w.scan.Value()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Odd says why the body is no conversation. It is read to its end nevertheless.
func (w *Walker) Odd(why string) { w.odd = cmp.Or(w.odd, why) }

// IsOdd reports whether it is none.
func (w *Walker) IsOdd() bool { return w.odd != "" }

// Digest makes the digest of a message.
func (w *Walker) Digest() *Digest { return &w.digest }

// Element is where the element that is being read stands in the body.
func (w *Walker) Element() dialect.Span { return dialect.Span{From: w.from, To: w.scan.Offset()} }

// Between is a part of the body.
func (w *Walker) Between(at dialect.Span) []byte { return w.text[at.From:at.To:at.To] }

// Filed are the messages so far.
func (w *Walker) Filed() []session.Message { return w.messages }

// Member is the value of a member of the body, which Format.Members has.
func (w *Walker) Member(name string) rawjson.Value { return w.top[slices.Index(w.of.keys, name)] }

// Object reads an object, and refuses keys that other parsers could see differently. It is called at to the client. Other values than null
// are odd.
func (w *Walker) Object(v rawjson.Value, keys []string, at, odd string) (o Object, err error) {
	o.keys = keys
	switch v.Kind {
	case 0, rawjson.Null:
	case rawjson.Object:
		s := rawjson.NewScanner(v.Raw, rawjson.MaxDepth)
		err = w.object(&s, v.Raw, &o, at)
	default:
		w.Odd(odd)
	}
	return o, err
}

// Each reads the objects of a list as Object does. Other elements are odd. take gets each with its end in the text of the list; the next one
// comes in its place.
func (w *Walker) Each(list rawjson.Value, keys []string, at, odd string, take func(o *Object, end int) error) error {
	s, o := rawjson.NewScanner(list.Raw, rawjson.MaxDepth), &w.inner
	for entered := s.Array(); entered && s.Element(); {
		if s.Kind() != rawjson.Object {
			w.Odd(odd)
			continue
		}
		*o = Object{keys: keys}
		if err := w.object(&s, list.Raw, o, at); err != nil {
			return err
		}
		if err := take(o, s.Offset()); err != nil {
			return err
		}
	}
	return nil
}

// object reads the object that comes next in a text, into o.
func (w *Walker) object(s *rawjson.Scanner, text []byte, o *Object, at string) error {
	from := s.Offset()
	for entered := s.Object(); entered && s.Member(); {
		i, err := w.claim(o.keys, o.values[:], s.Key(), at)
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
		o.Raw = text[from:s.Offset():s.Offset()]
	}
	return nil
}

// claim gives the index of a known key, -1 for others. It refuses one that occurs twice (some parsers take the first, some the last), or
// that is spelt with escapes (which a filter that does not decode keys would miss), or with other letters.
func (w *Walker) claim(keys []string, values []rawjson.Value, key rawjson.Key, at string) (int, error) {
	var buf [longestKey]byte
	name := key.Name(buf[:0])
	i := indexOf(keys, name)
	switch {
	case i < 0:
		return i, w.alike(name, keys, at)
	case key.Escapes != rawjson.Plain:
		return i, w.refused(dialect.CodeEscapedKey, at+string(name), "is spelt with escapes; send it plain")
	case values[i].Kind != 0:
		return i, w.refused(dialect.CodeDuplicateKey, at+string(name), "occurs twice; send it once")
	}
	return i, nil
}

// alike refuses a key that is a known one to parsers that do not tell small letters from capitals, as Go's does not.
func (w *Walker) alike(name []byte, keys []string, at string) error {
	if !slices.ContainsFunc(name, func(c byte) bool { return c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' }) {
		return nil
	}
	folded := bytes.ToLower(bytes.ToUpper(name))
	if bytes.Equal(folded, name) || indexOf(keys, folded) < 0 {
		return nil
	}
	return w.refused(dialect.CodeDuplicateKey, at+string(name), "is a known key in other letters; send it in small ones")
}

func (w *Walker) refused(code, param, what string) error {
	if w.index >= 0 {
		param = fmt.Sprintf("%s[%d].%s", w.of.format.List, w.index, param)
	}
	return &dialect.Error{Code: code, Param: param, Message: fmt.Sprintf("The key %s %s.", param, what)}
}

// history reads the list of messages, and files what is known of it already.
func (w *Walker) history(slot *rawjson.Value) error {
	from := w.scan.Offset()
	if !w.scan.Array() {
		*slot = w.scan.Value()
		w.inside = dialect.Span{From: from, To: w.scan.Offset()}
		w.from = from
		if slot.Kind == rawjson.String && w.reader.Text != nil {
			w.reader.Text(*slot)
		} else {
			w.odd = w.of.format.List + " is not an array"
		}
		return nil
	}
	slot.Kind = rawjson.Array
	if b, known := w.of.memory.find(w.text); b != nil {
		w.past, w.known, w.messages, w.ends = b, known, slices.Clip(b.messages[:known]), slices.Clip(b.ends[:known])
		if known == len(b.messages) && b.extended.CompareAndSwap(false, true) {
			w.extends, w.messages, w.ends = true, b.messages, b.ends
		}
		last := w.ends[known-1]
		w.index, w.scan = last.index, rawjson.Resume(w.text, w.of.options.MaxDepth, rawjson.Spot{Offset: last.element, Open: openAtMessages})
	}
	for w.scan.Element() {
		if err := w.element(); err != nil {
			return err
		}
	}
	if w.odd == "" && w.scan.Err() == nil && w.reader.Close != nil {
		w.reader.Close()
	}
	w.inside, w.index = dialect.Span{From: from + 1, To: w.scan.Offset() - 1}, -1
	return w.unambiguous()
}

// openAtMessages is how many containers are open between two messages: the body and their array.
const openAtMessages = 2

// element reads one element of the list.
func (w *Walker) element() error {
	if w.index++; w.index >= maxMessages {
		w.odd = "there are too many " + w.of.format.List
	}
	w.from = w.scan.Offset()
	if w.scan.Kind() != rawjson.Object {
		if w.scan.Value().Kind != 0 { // else it is not sound
			w.odd = w.of.format.Element + " is not an object"
		}
		return nil
	}
	o := &w.now
	*o = Object{keys: w.reader.Keys}
	if err := w.object(&w.scan, w.text, o, ""); err != nil || w.scan.Err() != nil {
		return err
	}
	filed := len(w.messages)
	if err := w.reader.Element(o); err != nil {
		return err
	}
	if last := len(w.ends) - 1; len(w.messages) > filed && w.ends[last].raw > w.from { // else the element is held back
		w.ends[last].element = w.scan.Offset()
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

// File adds a message whose raw text ends at an offset of the body.
func (w *Walker) File(m session.Message, end int) {
	if len(w.messages) >= maxMessages {
		w.odd = "there are too many " + w.of.format.List
	}
	if w.odd == "" {
		w.messages, w.ends = append(w.messages, m), append(w.ends, endOf{raw: end, index: w.index})
	}
}
