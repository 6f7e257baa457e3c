package chat

import (
	"bytes"
	"slices"
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
	begun []*beginning // most recently used first
	bytes int          // that they hold
}

const (
	maxBegun   = 512     // beginnings that a body is looked for in
	minBegun   = 1 << 10 // bytes of a body that is worth remembering
	tailSize   = 24
	marksKept  = 4   // clients change the newest messages now and then: where to cache, mostly
	perMessage = 144 // bytes that a message takes beside its text
)

// beginning is a text up to the end of a message, and what it says. It never changes, and what is made of it later shares
// its slices.
type beginning struct {
	chunks   [][]byte // the text
	size     int
	messages []session.Message // their Raw aliases chunks
	ends     []int             // where each message ends
	inside   int               // where the array of messages begins
	top      top
	fields   []rawjson.Value
	marks    [marksKept]mark // where to read on, the newest first
	extended atomic.Bool     // the room behind its slices is taken
}

// mark is the end of a message, and the text just before it, which hardly another body has there.
type mark struct {
	messages, end int // 0: none
	tail          [tailSize]byte
}

func (m *mark) fits(body []byte) bool {
	return m.end > 0 && m.end < len(body) && [tailSize]byte(body[m.end-tailSize:m.end]) == m.tail
}

// find gives the longest beginning that the body has, and how many of its messages; nil if it has none.
func (m *memory) find(body []byte) (*beginning, int) {
	if m.limit == 0 || len(body) < minBegun {
		return nil, 0
	}
	b, at := m.look(body, 0)
	for ; b != nil; b, at = m.look(body, at+1) {
		for i := range b.marks {
			if k := &b.marks[i]; k.fits(body) && b.begins(body[:k.end]) {
				m.used(b)
				return b, k.messages
			}
		}
	}
	return nil, 0
}

// look gives the next beginning that the body may have, and its index. Others may go meanwhile: one is missed then, which
// does no harm.
func (m *memory) look(body []byte, from int) (*beginning, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := from; i < len(m.begun); i++ {
		b := m.begun[i]
		for k := range b.marks {
			if b.marks[k].fits(body) {
				return b, i
			}
		}
	}
	return nil, 0
}

// begins reports whether text is how the beginning begins.
func (b *beginning) begins(text []byte) bool {
	for _, chunk := range b.chunks {
		n := min(len(chunk), len(text))
		if !bytes.Equal(chunk[:n], text[:n]) {
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
	if i := slices.Index(m.begun, b); i > 0 {
		copy(m.begun[1:i+1], m.begun[:i])
		m.begun[0] = b
	}
}

// keep remembers b, in the place of the one that it goes on from.
func (m *memory) keep(b, instead *beginning) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.begun, instead); instead != nil && i >= 0 {
		m.bytes -= m.begun[i].held()
		m.begun = slices.Delete(m.begun, i, i+1)
	}
	m.begun = slices.Insert(m.begun, 0, b)
	for m.bytes += b.held(); m.bytes > m.limit || len(m.begun) > maxBegun; {
		last := len(m.begun) - 1
		m.bytes -= m.begun[last].held()
		m.begun[last] = nil
		m.begun = m.begun[:last]
	}
}

func (b *beginning) held() int { return b.size + perMessage*len(b.messages) }

// remember makes a beginning of the body that was read, and gives its messages, which do not alias the body. They are
// those of the beginning that was read on from, and fresh ones.
func (w *splitter) remember(fresh []session.Message) []session.Message {
	past := slices.Clip(w.past.messages())
	size := w.ends[len(w.ends)-1]
	if w.d.memory.limit < size*2 {
		return append(past, fresh...)
	}
	b := &beginning{size: size, inside: w.inside.From}
	b.top, b.fields = w.opening()
	from := w.past.copyTo(b)
	chunk := bytes.Clone(w.text[from:size])
	b.chunks = append(b.chunks, chunk)
	b.ends = append(b.ends, w.ends...)
	for i := range fresh {
		end := w.ends[i] - from
		start := end - len(fresh[i].Raw)
		fresh[i].Raw = chunk[start:end:end]
	}
	b.messages = append(b.messages, fresh...)
	b.mark(w.text)
	w.d.memory.keep(b, w.past.of)
	return b.messages[:len(b.messages):len(b.messages)]
}

// opening is what the body says in front of its messages, for good: it does not alias the body.
func (w *splitter) opening() (top, []rawjson.Value) {
	if w.past.of != nil {
		return w.past.of.top, w.past.of.fields
	}
	t, fields := w.before, slices.Clone(w.fieldsBefore)
	for _, v := range []*rawjson.Value{&t.model, &t.stream, &t.maxTokens, &t.maxCompletionTokens, &t.tools, &t.functions} {
		v.Raw = bytes.Clone(v.Raw)
	}
	for i := range fields {
		fields[i].Raw = bytes.Clone(fields[i].Raw)
	}
	return t, fields
}

// mark notes where to read on.
func (b *beginning) mark(text []byte) {
	n := len(b.ends)
	for i := range b.marks {
		if i < n && b.ends[n-1-i] >= tailSize {
			k := mark{messages: n - i, end: b.ends[n-1-i]}
			k.tail = [tailSize]byte(text[k.end-tailSize : k.end])
			b.marks[i] = k
		}
	}
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

// copyTo begins b with the same text and messages, and gives the text's length. The slices are shared: the first to go on
// at their end takes the room behind them, all others copy.
func (p past) copyTo(b *beginning) int {
	if p.of == nil {
		return 0
	}
	end := p.of.ends[p.known-1]
	if p.known == len(p.of.messages) && p.of.extended.CompareAndSwap(false, true) {
		b.chunks, b.messages, b.ends = p.of.chunks, p.of.messages, p.of.ends
		return end
	}
	b.chunks, b.messages, b.ends = upTo(p.of.chunks, end), slices.Clip(p.of.messages[:p.known]), slices.Clip(p.of.ends[:p.known])
	return end
}

// upTo gives the first n bytes of chunks.
func upTo(chunks [][]byte, n int) [][]byte {
	var out [][]byte
	for _, chunk := range chunks {
		if n <= 0 {
			break
		}
		chunk = chunk[:min(len(chunk), n)]
		out, n = append(out, chunk), n-len(chunk)
	}
	return out
}
