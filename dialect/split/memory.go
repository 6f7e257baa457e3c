package split

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// memory remembers how bodies began, as they were read. Clients send their whole history each time: a body that begins as
// one before is compared with that, byte for byte, and read on from there, so that its cost follows what is new. Reading
// depends on nothing but the text, so a memory changes no answer. It is safe for concurrent use.
type memory struct {
	limit int // bytes; 0: nothing is remembered

	mu    sync.Mutex
	begun []entry // most recently used first
	bytes int     // that they hold
}

// entry is what a body is compared with first.
type entry struct {
	marks [marksKept]mark // where to read on, the newest first
	of    *beginning
}

const (
	maxBegun   = 512      // beginnings that a body is looked for in
	minBegun   = 32 << 10 // bytes of a body that is worth remembering: a smaller one is read as soon as it is found
	tailSize   = 24       // bytes; every message that says anything is longer
	marksKept  = 4        // clients change the newest messages now and then: where to cache, mostly
	perMessage = 160      // bytes that a message takes on top of its text and its ids
	perCall    = 16       // bytes that an id of a call takes on top of its text
)

// beginning is a text up to the end of a message, and what it says. It never changes, and what is made of it later shares
// its slices.
type beginning struct {
	passages []passage // the text
	size     int
	kept     int               // bytes that the passages hold
	messages []session.Message // their Raw aliases passages
	ends     []endOf           // where each message ends
	inside   int               // where the list of messages begins
	top      members           // what the body says in front of it
	extended atomic.Bool       // the room behind its slices is taken
	watched  atomic.Int32      // whether it has Format.Watch
}

// What is known of a beginning's watched word.
const (
	unsearched = iota
	without
	with
)

// mentions reports whether the beginning has a word. It is searched once, and what goes on from it only where it does.
func (b *beginning) mentions(word string) bool {
	if b.watched.Load() == unsearched {
		found := int32(without)
		if slices.ContainsFunc(b.passages, func(p passage) bool { return bytes.Contains(p.text, []byte(word)) }) {
			found = with
		}
		b.watched.Store(found)
	}
	return b.watched.Load() == with
}

// passage is a part of a text, up to the end of a message. More of it may be held than is used: what another beginning goes on
// with instead.
type passage struct {
	text []byte
	held int // bytes, with all that is kept for the sake of its messages
}

// mark is the end of a message, and a word made of the text just before it, which hardly another body has there.
type mark struct {
	end      int // 0: none
	tail     uint64
	messages int // up to there
}

func (k mark) fits(body []byte) bool {
	return k.end > 0 && k.end < len(body) && tailOf(body[:k.end]) == k.tail
}

// tailOf folds the end of a text.
func tailOf(text []byte) uint64 {
	t := text[len(text)-tailSize:]
	return binary.LittleEndian.Uint64(t) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(t[8:]), 21) ^
		bits.RotateLeft64(binary.LittleEndian.Uint64(t[16:]), 42)
}

// find gives the longest beginning that the body has, and how many of its messages; nil if it has none.
func (m *memory) find(body []byte) (*beginning, int) {
	if m.limit == 0 || len(body) < minBegun {
		return nil, 0
	}
	found := m.look(body)
	slices.SortStableFunc(found, func(a, b likely) int { return b.end() - a.end() })
	for _, l := range found {
		if b := l.of; b.begins(body[:l.end()]) {
			m.used(b)
			return b, l.messages
		}
	}
	return nil, 0
}

// likely is a beginning that a body may have, and how many of its messages.
type likely struct {
	of       *beginning
	messages int
}

func (l likely) end() int { return l.of.ends[l.messages-1].element }

// look gives the beginnings that the body may have.
func (m *memory) look(body []byte) []likely {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []likely
	for i := range m.begun {
		e := &m.begun[i]
		for k := range e.marks {
			if e.marks[k].fits(body) {
				found = append(found, likely{e.of, e.marks[k].messages})
			}
		}
	}
	return found
}

// begins reports whether text is how the beginning begins.
func (b *beginning) begins(text []byte) bool {
	for _, p := range b.passages {
		n := min(len(p.text), len(text))
		if !bytes.Equal(p.text[:n], text[:n]) {
			return false
		}
		if text = text[n:]; len(text) == 0 {
			return true
		}
	}
	return false
}

// used makes b the last to be forgotten.
func (m *memory) used(b *beginning) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.index(b); i > 0 {
		e := m.begun[i]
		copy(m.begun[1:i+1], m.begun[:i])
		m.begun[0] = e
	}
}

func (m *memory) index(b *beginning) int {
	return slices.IndexFunc(m.begun, func(e entry) bool { return e.of == b })
}

// keep remembers b, in the place of the one that it goes on from, unless it would take most of the room.
func (m *memory) keep(b, instead *beginning) {
	if b.held()*2 > m.limit {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.index(instead); i >= 0 {
		m.bytes -= instead.held()
		m.begun = slices.Delete(m.begun, i, i+1)
	}
	m.begun = slices.Insert(m.begun, 0, entry{marks: b.marks(), of: b})
	for m.bytes += b.held(); m.bytes > m.limit || len(m.begun) > maxBegun; {
		last := len(m.begun) - 1
		m.bytes -= m.begun[last].of.held()
		m.begun = slices.Delete(m.begun, last, last+1)
	}
}

func (b *beginning) held() int { return b.kept + perMessage*len(b.messages) }

// remembered gives all messages of the body. Where it pays, they are kept as a beginning, and do not alias the body; they are
// those of the beginning that was read on from, and fresh ones.
func (w *Walker) remembered() []session.Message {
	memory, settled := &w.of.memory, w.settled()
	switch {
	case len(w.fresh.messages) == 0:
		return slices.Clip(w.past.messages())
	case memory.limit > 0 && len(w.text) >= minBegun:
		if settled > 0 && memory.limit >= w.fresh.ends[settled-1].element*2 {
			return append(w.remember(memory, settled), w.fresh.messages[settled:]...)
		}
		return append(slices.Clip(w.past.messages()), w.fresh.messages...)
	case cap(w.fresh.messages) <= maxItems:
		return slices.Clone(w.fresh.messages)
	}
	messages := w.fresh.messages
	w.fresh.messages = nil
	return messages
}

// settled is how many of the fresh messages can be read on from: what follows in another body cannot become a part of them.
func (w *Walker) settled() int {
	n := len(w.fresh.ends)
	for n > 0 && w.fresh.ends[n-1].element == 0 {
		n--
	}
	return n
}

// remember makes a beginning of the body up to the end of so many fresh messages, and gives its messages.
func (w *Walker) remember(m *memory, fresh int) []session.Message {
	size := w.fresh.ends[fresh-1].element
	b := &beginning{size: size, inside: w.inside.From, top: w.opening()}
	from := w.past.copyTo(b)
	b.messages, b.ends = append(b.messages, w.fresh.messages[:fresh]...), append(b.ends, w.fresh.ends[:fresh]...)
	b.own(w.text[:size], from, w.past.known)
	if of := w.past.of; of != nil && of.watched.Load() == without && !bytes.Contains(w.text[from:size], []byte(w.format.Watch)) {
		b.watched.Store(without)
	}
	m.keep(b, w.past.of)
	return b.messages[:len(b.messages):len(b.messages)]
}

// own copies the text from there on, with what is known of its messages: the first ones may be in a text that is not kept.
func (b *beginning) own(text []byte, from, known int) {
	c := passage{text: bytes.Clone(text[from:])}
	c.held = cap(c.text)
	if from == 0 {
		c.held += b.opened()
	}
	for i := len(b.ends) - 1; i >= 0 && b.ends[i].raw > from; i-- {
		m, end := &b.messages[i], b.ends[i].raw-from
		m.Raw = c.text[end-len(m.Raw) : end : end]
		if i < known {
			m.Calls, m.Result = cloned(m.Calls), strings.Clone(m.Result)
		}
		c.held += len(m.Result) + perCall*len(m.Calls)
		for _, id := range m.Calls {
			c.held += len(id)
		}
	}
	b.passages, b.kept = append(b.passages, c), b.kept+c.held
}

// opened is the size of what the body says in front of its messages.
func (b *beginning) opened() (n int) {
	for _, values := range [...][]rawjson.Value{b.top.read, b.top.fields} {
		for _, v := range values {
			n += len(v.Raw)
		}
	}
	return n
}

func cloned(ids []string) []string {
	out := slices.Clone(ids)
	for i := range out {
		out[i] = strings.Clone(out[i])
	}
	return out
}

// opening is what the body says in front of its messages, for good: it does not alias the body.
func (w *Walker) opening() members {
	if w.past.of != nil {
		return w.past.of.top
	}
	return members{read: own(w.before.read), fields: own(w.before.fields)}
}

func own(values []rawjson.Value) []rawjson.Value {
	out := slices.Clone(values)
	for i := range out {
		out[i].Raw = bytes.Clone(out[i].Raw)
	}
	return out
}

// marks are where to read on: behind the newest elements, the newest first.
func (b *beginning) marks() (all [marksKept]mark) {
	n := 0
	for i := len(b.ends) - 1; i >= 0 && n < marksKept; i-- {
		at := b.ends[i].element
		if at == 0 {
			continue
		}
		if text := b.upTo(at); len(text) >= tailSize {
			all[n] = mark{end: at, tail: tailOf(text), messages: i + 1}
		}
		n++
	}
	return all
}

// upTo is the passage that has the byte before an offset, up to there.
func (b *beginning) upTo(offset int) []byte {
	for _, p := range b.passages {
		if offset <= len(p.text) {
			return p.text[:offset]
		}
		offset -= len(p.text)
	}
	return nil
}

// past is the part of a beginning that a body was read on from. The zero value is none.
type past struct {
	of    *beginning
	known int // messages
}

func (p past) messages() []session.Message {
	if p.of == nil {
		return nil
	}
	return p.of.messages[:p.known]
}

// copyTo begins b with the same text and messages, and gives the length of the text: b goes on from there. The slices are
// shared: the first to go on at their end takes the room behind them, all others copy.
func (p past) copyTo(b *beginning) int {
	if p.of == nil {
		return 0
	}
	if p.known == len(p.of.messages) && p.of.extended.CompareAndSwap(false, true) {
		b.passages, b.kept, b.messages, b.ends = p.of.passages, p.of.kept, p.of.messages, p.of.ends
		return p.of.size
	}
	b.messages, b.ends = slices.Clip(p.of.messages[:p.known]), slices.Clip(p.of.ends[:p.known])
	b.passages = upTo(p.of.passages, p.of.ends[p.known-1].element)
	size := 0
	for _, c := range b.passages {
		size, b.kept = size+len(c.text), b.kept+c.held
	}
	return size
}

// upTo gives the first n bytes of passages, or less: a passage of which little would be used is held in vain.
func upTo(passages []passage, n int) (out []passage) {
	for _, c := range passages {
		if len(c.text) > n {
			if c.text = c.text[:n]; c.held > 2*n {
				break
			}
		}
		if out, n = append(out, c), n-len(c.text); n == 0 {
			break
		}
	}
	return out
}
