package split

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// memory keeps the beginnings of recent bodies and the messages read from them. Clients resend their whole history with
// each request. If a body starts with a remembered prefix, byte for byte, reading continues at the end of that prefix, so
// that the cost depends on what is new. The result of reading depends on the text only, so a memory never changes it.
// It is safe for concurrent use.
type memory struct {
	limit int // in bytes; 0 disables the memory

	mu       sync.Mutex
	prefixes []*prefix // most recently used first
	bytes    int       // size of all prefixes
}

const (
	maxPrefixes     = 512      // each lookup tries all of them
	minBody         = 16 << 10 // bytes; reading a smaller body costs no more than finding it
	tailSize        = 24       // bytes; a message with any content is longer
	maxCheckpoints  = 4        // clients sometimes change their newest messages, mostly to move cache marks
	messageOverhead = 160      // bytes per message in addition to its text and ids
	callOverhead    = 16       // bytes per call id in addition to its text
)

// prefix is the beginning of a body up to the end of a message, and what was read from it. It is immutable. A prefix that
// extends it may use the spare capacity of its slices, so that an extension costs only what is new.
type prefix struct {
	checkpoints [maxCheckpoints]checkpoint // newest first
	text        []byte
	messages    []session.Message // their Raw aliases text
	ends        []messageEnd      // of each message
	size        int               // in bytes, including all memory that the messages keep alive
	extended    atomic.Bool       // the spare capacity is taken
}

// checkpoint is the end of a message, from which reading can continue. tail is the text right before it, which few other
// bodies have in that place.
type checkpoint struct {
	end      int // 0: unused
	tail     [tailSize]byte
	messages int // number of messages before end
}

// find returns the remembered prefix that shares the most messages with body, and their number. It returns nil if there
// is none.
func (m *memory) find(body []byte) (found *prefix, messages int) {
	if m.limit == 0 || len(body) < minBody {
		return nil, 0
	}
	m.mu.Lock()
	prefixes := slices.Clone(m.prefixes) // compared without the lock: there may be many
	m.mu.Unlock()
	end := 0
	for _, p := range prefixes {
		for _, c := range p.checkpoints {
			if end < c.end && c.end < len(body) && c.tail == [tailSize]byte(body[c.end-tailSize:]) && bytes.Equal(body[:c.end], p.text[:c.end]) {
				found, messages, end = p, c.messages, c.end
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.prefixes, found); i > 0 { // it is now the most recently used one
		m.prefixes = slices.Insert(slices.Delete(m.prefixes, i, i+1), 0, found)
	}
	return found, messages
}

// add remembers p instead of the prefix that it extends, and drops the least recently used prefixes to stay within the
// limit. A prefix larger than half of the limit is not remembered.
func (m *memory) add(p, base *prefix) {
	if p.size*2 > m.limit {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.prefixes, base); i >= 0 {
		m.remove(i)
	}
	m.prefixes = slices.Insert(m.prefixes, 0, p)
	m.bytes += p.size
	for m.bytes > m.limit || len(m.prefixes) > maxPrefixes {
		m.remove(len(m.prefixes) - 1)
	}
}

func (m *memory) remove(i int) {
	m.bytes -= m.prefixes[i].size
	m.prefixes = slices.Delete(m.prefixes, i, i+1)
}

// remember adds the body to the memory, up to the last message that can no longer change when more elements follow.
// Afterwards those messages alias the memory instead of the body.
func (w *Walker) remember() {
	settled := len(w.ends)
	for settled > 0 && w.ends[settled-1].element == 0 {
		settled--
	}
	memory := &w.splitter.memory
	if w.extends && len(w.Messages) == w.known { // nothing was appended: give the capacity back
		w.base.extended.Store(false)
	}
	if settled <= w.known || len(w.text) < minBody || w.ends[settled-1].element*2 > memory.limit {
		return
	}
	p := &prefix{}
	if w.extends {
		p.text = w.base.text
	}
	size := w.ends[settled-1].element
	known := w.known
	if cap(p.text) < size { // append moves the text, so the known messages must be changed to alias the new one
		w.Messages = slices.Clone(w.Messages)
		known = 0
	}
	p.text = append(p.text, w.text[len(p.text):size]...)
	p.messages, p.ends = w.Messages[:settled], w.ends[:settled]
	if settled < len(w.Messages) {
		p.messages = slices.Clip(p.messages) // the request uses the elements behind it
	}
	for i := known; i < settled; i++ {
		m, end := &p.messages[i], p.ends[i].raw
		m.Raw = p.text[end-len(m.Raw) : end : end]
	}
	p.measure()
	p.setCheckpoints()
	memory.add(p, w.base)
}

// setCheckpoints sets the checkpoints to the ends of the newest elements, newest first.
func (p *prefix) setCheckpoints() {
	n := 0
	for i := len(p.ends) - 1; i >= 0 && n < maxCheckpoints; i-- {
		if end := p.ends[i].element; end >= tailSize {
			p.checkpoints[n] = checkpoint{end, [tailSize]byte(p.text[end-tailSize:]), i + 1}
			n++
		}
	}
}

// measure sets size.
func (p *prefix) measure() {
	p.size = cap(p.text) + messageOverhead*cap(p.messages)
	for i := range p.messages {
		p.size += len(p.messages[i].Result) + callOverhead*cap(p.messages[i].Calls)
		for _, id := range p.messages[i].Calls {
			p.size += len(id)
		}
	}
}
