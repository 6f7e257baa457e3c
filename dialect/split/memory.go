package split

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// memory remembers how bodies began, as they were read. Clients send their whole history each time: a body that begins as
// one before is compared with that, byte for byte, and read on from there, so that its cost follows what is new. Reading
// depends on nothing but the text, so a memory changes no answer. It is safe for concurrent use.
type memory struct {
	limit int // bytes; 0: nothing is remembered

	mu    sync.Mutex
	begun []*beginning // most recently used first
	bytes int          // that they hold
}

const (
	maxBegun   = 512      // beginnings that a body is looked for in
	minBegun   = 16 << 10 // bytes of a body that is worth remembering: a smaller one is read as soon as it is found
	tailSize   = 24       // bytes; every message that says anything is longer
	marksKept  = 4        // clients change the newest messages now and then: where to cache, mostly
	perMessage = 160      // bytes that a message takes on top of its text and its ids
	perCall    = 16       // bytes that an id of a call takes on top of its text
)

// beginning is a text up to the end of a message, and what it says. It never changes. What goes on from it may take the room behind its
// slices, so that a step costs what is new.
type beginning struct {
	marks    [marksKept]mark // where to read on, the newest first
	text     []byte
	messages []session.Message // their Raw aliases text
	ends     []endOf           // where each message ends
	held     int               // bytes, with all that is kept for the sake of its messages
	extended atomic.Bool       // the room is taken
}

// mark is the end of a message, and a word made of the text just before it, which hardly another body has there.
type mark struct {
	end      int // 0: none
	tail     uint64
	messages int // up to there
}

// tailOf folds the end of a text.
func tailOf(text []byte) uint64 {
	t := text[len(text)-tailSize:]
	return binary.LittleEndian.Uint64(t) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(t[8:]), 21) ^
		bits.RotateLeft64(binary.LittleEndian.Uint64(t[16:]), 42)
}

// find gives the longest beginning that the body has, and how many of its messages; nil if it has none.
func (m *memory) find(body []byte) (found *beginning, messages int) {
	if m.limit == 0 || len(body) < minBegun {
		return nil, 0
	}
	end := 0
	for _, l := range m.likely(body) { // there may be many, and no other request waits for that
		if l.end > end && bytes.Equal(body[:l.end], l.of.text[:l.end]) {
			found, messages, end = l.of, l.messages, l.end
		}
	}
	if found != nil {
		m.used(found)
	}
	return found, messages
}

// likelihood is a mark that a body seems to have.
type likelihood struct {
	mark
	of *beginning
}

func (m *memory) likely(body []byte) (all []likelihood) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.begun {
		for _, k := range b.marks {
			if k.end > 0 && k.end < len(body) && tailOf(body[:k.end]) == k.tail {
				all = append(all, likelihood{k, b})
			}
		}
	}
	return all
}

// used makes b the last to be forgotten.
func (m *memory) used(b *beginning) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.begun, b); i > 0 {
		m.begun = slices.Insert(slices.Delete(m.begun, i, i+1), 0, b)
	}
}

// keep remembers b, in the place of the one that it goes on from, unless it would take most of the room.
func (m *memory) keep(b, instead *beginning) {
	if b.held*2 > m.limit {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.begun, instead); i >= 0 {
		m.forget(i)
	}
	m.begun = slices.Insert(m.begun, 0, b)
	for m.bytes += b.held; m.bytes > m.limit || len(m.begun) > maxBegun; {
		m.forget(len(m.begun) - 1)
	}
}

func (m *memory) forget(i int) {
	m.bytes -= m.begun[i].held
	m.begun = slices.Delete(m.begun, i, i+1)
}

// remember keeps the body up to the last message that another body can be read on from: what follows in that cannot become a part of
// the message. The messages do not alias the body then.
func (w *Walker) remember() {
	settled := len(w.ends)
	for settled > 0 && w.ends[settled-1].element == 0 {
		settled--
	}
	memory := &w.of.memory
	if w.extends && len(w.messages) == w.known { // nothing was written there
		w.past.extended.Store(false)
	}
	if settled <= w.known || len(w.text) < minBegun || w.ends[settled-1].element*2 > memory.limit {
		return
	}
	b := &beginning{}
	if w.extends {
		b.text = w.past.text
	}
	size, known := w.ends[settled-1].element, w.known
	if cap(b.text) < size { // what is known already stands in the text that is left behind
		w.messages, known = slices.Clone(w.messages), 0
	}
	b.text = append(b.text, w.text[len(b.text):size]...)
	if b.messages, b.ends = w.messages[:settled], w.ends[:settled]; settled < len(w.messages) {
		b.messages = slices.Clip(b.messages) // the request has what stands behind
	}
	for i := known; i < settled; i++ {
		m, end := &b.messages[i], b.ends[i].raw
		m.Raw = b.text[end-len(m.Raw) : end : end]
	}
	b.hold()
	b.mark()
	memory.keep(b, w.past)
}

// mark notes where to read on: behind the newest elements, the newest first.
func (b *beginning) mark() {
	n := 0
	for i := len(b.ends) - 1; i >= 0 && n < marksKept; i-- {
		if at := b.ends[i].element; at >= tailSize {
			b.marks[n] = mark{end: at, tail: tailOf(b.text[:at]), messages: i + 1}
			n++
		}
	}
}

// hold counts what is held.
func (b *beginning) hold() {
	b.held = cap(b.text) + perMessage*cap(b.messages)
	for i := range b.messages {
		b.held += len(b.messages[i].Result) + perCall*cap(b.messages[i].Calls)
		for _, id := range b.messages[i].Calls {
			b.held += len(id)
		}
	}
}
