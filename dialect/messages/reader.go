package messages

import (
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// message is what is known of an element of the list.
type message struct {
	role, content rawjson.Value
	more          bool // it has other members
}

// Slot gives the place of a known key.
func (m *message) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "role":
		return &m.role
	case "content":
		return &m.content
	}
	m.more = true
	return nil
}

// block is what is known of a content block.
type block struct {
	kind, id, name, input, answers, content, failed rawjson.Value
	text, thinking, signature, data, source, title  rawjson.Value
}

// Slot gives the place of a known key.
func (b *block) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "type":
		return &b.kind
	case "id":
		return &b.id
	case "name":
		return &b.name
	case "input":
		return &b.input
	case "tool_use_id":
		return &b.answers
	case "content":
		return &b.content
	case "is_error":
		return &b.failed
	case "text":
		return &b.text
	case "thinking":
		return &b.thinking
	case "signature":
		return &b.signature
	case "data":
		return &b.data
	case "source":
		return &b.source
	case "title":
		return &b.title
	}
	return nil
}

// sealed reports whether the block is reasoning that is bound to all that stood before it.
func (b *block) sealed() bool {
	return b.kind.Is("redacted_thinking") || b.kind.Is("thinking") && len(b.signature.Inner()) > 0
}

// attached reports whether the block holds anything but text, thinking, a call and a result of texts.
func (b *block) attached() bool {
	switch {
	case b.kind.Is("text"), isThinking(b.kind), b.kind.Is("tool_use"):
		return false
	case b.kind.Is("tool_result") && b.content.Kind != rawjson.Array:
		return false
	case b.kind.Is("tool_result"):
		for element := range rawjson.Elements(b.content.Raw) {
			var inner block
			if split.Fill(&inner, element.Raw); inner.attached() {
				return true
			}
		}
		return false
	}
	return true
}

func anyAttached(blocks []placed) bool {
	for i := range blocks {
		if blocks[i].attached() {
			return true
		}
	}
	return false
}

func isThinking(kind rawjson.Value) bool { return kind.Is("thinking") || kind.Is("redacted_thinking") }

// reader reads the messages of one body.
type reader struct {
	w      *split.Walker
	msg    message
	block  block    // being read
	blocks []placed // of msg
	ids    []rawjson.Value
	list   []byte // scratch
}

// placed is a block, and where its raw text ends.
type placed struct {
	block
	raw []byte
	end int
}

// What is understood of one message at most, and what scratch may hold.
const (
	maxBlocks = 16 << 10
	maxKept   = 1 << 20
)

func newReader(w *split.Walker) split.Reader { return &reader{w: w} }

// Reset forgets the body, and scratch that grew too large to keep.
func (r *reader) Reset() {
	r.msg, r.block = message{}, block{}
	clear(r.blocks[:cap(r.blocks)])
	clear(r.ids[:cap(r.ids)])
	r.blocks, r.ids, r.list = split.Recycle(r.blocks, 1<<10), split.Recycle(r.ids, 1<<10), split.Recycle(r.list, maxKept)
}

// Element reads one element of messages.
func (r *reader) Element() error {
	from := r.w.Offset()
	if !r.w.Enter() {
		r.w.Odd("a message is not an object")
		return nil
	}
	r.msg, r.blocks = message{}, r.blocks[:0]
	if err := r.w.Object(&r.msg, ""); err != nil || r.w.Failed() {
		return err
	}
	r.file(r.w.Text(from))
	return nil
}

// Text reports that a history is no text.
func (r *reader) Text(rawjson.Value) bool { return false }

// Close has nothing to file.
func (r *reader) Close() {}

// Take reads the blocks of a content.
func (r *reader) Take(slot *rawjson.Value) (bool, error) {
	if slot != &r.msg.content || r.w.Kind() != rawjson.Array {
		return false, nil
	}
	from := r.w.Offset()
	err := r.w.Each(slot, r.contentBlock, "")
	slot.Raw = r.w.Text(from)
	return true, err
}

func (r *reader) contentBlock() error {
	from := r.w.Offset()
	if !r.w.Enter() {
		r.w.Odd("a content block is not an object")
		return nil
	}
	r.block = block{}
	if err := r.w.Object(&r.block, "content."); err != nil {
		return err
	}
	if len(r.blocks) == maxBlocks {
		r.w.Odd("a message has too many content blocks")
		return nil
	}
	r.blocks = append(r.blocks, placed{r.block, r.w.Text(from), r.w.Offset()})
	return nil
}

// file files the element that was read, whole or in pieces.
func (r *reader) file(raw []byte) {
	m := session.Message{Raw: raw}
	r.ids = r.ids[:0]
	switch {
	case r.msg.role.Is("assistant"):
		m.Kind = session.Agent
		if len(r.blocks) > 0 && r.blocks[0].kind.Is(compaction) { // it stands for what was before it, and so it stays
			m.Kind = session.System
		}
		for i := range r.blocks {
			b := &r.blocks[i]
			m.Sealed = m.Sealed || b.sealed()
			if b.kind.Is("tool_use") {
				r.ids, m.Kind = append(r.ids, b.id), session.Action
			}
		}
	case r.msg.role.Is("user") && r.hasResults() && r.msg.more:
		r.w.Odd("a message with results has members that this API does not know")
		return
	case r.msg.role.Is("user") && r.hasResults():
		r.filePieces()
		return
	case r.msg.role.Is("user"):
		m.Kind = session.User
	case r.msg.role.Is("system"):
		m.Kind = session.System
	default:
		r.w.Odd("a message has a role that is not known")
		return
	}
	m.Digest = digest(r.w.Digest(), r.msg.role, r.msg.content)
	m.Attached = anyAttached(r.blocks)
	r.w.File(m, r.w.Offset(), r.ids, rawjson.Value{})
}

func (r *reader) hasResults() bool {
	for i := range r.blocks {
		if r.blocks[i].kind.Is("tool_result") {
			return true
		}
	}
	return false
}

// filePieces files each result of a user message, and the blocks between them.
func (r *reader) filePieces() {
	for i := 0; i < len(r.blocks); i++ {
		if b := &r.blocks[i]; b.kind.Is("tool_result") {
			m := session.Message{Raw: b.raw, Kind: session.Observation, Digest: resultDigest(r.w.Digest(), &b.block), Attached: b.attached()}
			r.w.File(m, b.end, nil, b.answers)
			continue
		}
		first := i
		for i+1 < len(r.blocks) && !r.blocks[i+1].kind.Is("tool_result") {
			i++
		}
		r.fileBlocks(r.blocks[first : i+1])
	}
}

func (r *reader) fileBlocks(run []placed) {
	last := &run[len(run)-1]
	raw := r.w.Between(last.end-distance(run), last.end)
	r.list = append(append(append(r.list[:0], '['), raw...), ']')
	content := rawjson.Value{Kind: rawjson.Array, Raw: r.list}
	m := session.Message{Raw: raw, Kind: session.User, Digest: digest(r.w.Digest(), r.msg.role, content), Attached: anyAttached(run)}
	r.w.File(m, last.end, nil, rawjson.Value{})
}

// distance is how far the raw text of a run of blocks reaches.
func distance(run []placed) int {
	first, last := &run[0], &run[len(run)-1]
	return last.end - first.end + len(first.raw)
}
