package messages

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// The keys that are known of an element of the list, and of a content block.
var (
	messageKeys = []string{"role", "content"}
	blockKeys   = []string{
		"type", "text", "id", "name", "input", "tool_use_id", "content", "is_error", "thinking", "signature", "data", "source", "title",
	}
)

// block is a content block.
type block struct {
	split.Object
	end int // where its raw text ends, in the message
}

// is reports whether the block is of a type.
func (b *block) is(kind string) bool { return b.Get("type").Is(kind) }

func isResult(b block) bool { return b.is("tool_result") }

// sealed reports whether the block is reasoning that is bound to all that stood before it.
func (b *block) sealed() bool {
	return b.is("redacted_thinking") || b.is("thinking") && len(b.Get("signature").Inner()) > 0
}

// attached reports whether a block holds anything but text, thinking, a call and a result of texts.
func attached(kind, content rawjson.Value) bool {
	if !kind.Is("tool_result") {
		return !plain(kind)
	}
	return content.Kind == rawjson.Array && split.Any(content, func(v rawjson.Value) bool { return !plain(split.Member(v, "type")) })
}

func plain(kind rawjson.Value) bool {
	return kind.Is("text") || isThinking(kind) || kind.Is("tool_use")
}

func anyAttached(blocks []block) bool {
	return slices.ContainsFunc(blocks, func(b block) bool { return attached(b.Get("type"), b.Get("content")) })
}

func isThinking(kind rawjson.Value) bool { return kind.Is("thinking") || kind.Is("redacted_thinking") }

// reader reads the messages of one body.
type reader struct {
	w      *split.Walker
	blocks []block // of the message that is being read
}

// maxBlocks is how many blocks are understood of one message at most.
const maxBlocks = 16 << 10

// element reads one element of messages, and files it, whole or in pieces.
func (r *reader) element(msg *split.Object) error {
	if err := r.read(msg.Raw, msg.Get("content")); err != nil {
		return err
	}
	blocks := r.blocks
	m, role := session.Message{Raw: msg.Raw}, msg.Get("role")
	switch {
	case role.Is("assistant"):
		m.Kind = session.Agent
		if len(blocks) > 0 && blocks[0].is(compaction) { // it stands for what was before it, and so it stays
			m.Kind = session.System
		}
		for i := range blocks {
			m.Sealed = m.Sealed || blocks[i].sealed()
			if blocks[i].is("tool_use") {
				m.Calls, m.Kind = append(m.Calls, blocks[i].Get("id").Text()), session.Action
			}
		}
	case role.Is("user") && slices.ContainsFunc(blocks, isResult):
		if msg.More {
			r.w.Odd("a message with results has members that this API does not know")
		}
		r.filePieces(msg.Raw, blocks)
		return nil
	case role.Is("user"):
		m.Kind = session.User
	case role.Is("system"):
		m.Kind = session.System
	default:
		r.w.Odd("a message has a role that is not known")
		return nil
	}
	m.Digest, m.Attached = digest(r.w.Digest(), role.Text(), msg.Get("content")), anyAttached(blocks)
	r.w.File(m, r.w.Element().To)
	return nil
}

// read reads the blocks of a message's content.
func (r *reader) read(message []byte, content rawjson.Value) error {
	r.blocks = r.blocks[:0]
	if content.Kind != rawjson.Array {
		return nil
	}
	at := split.EndOf(message, content) - len(content.Raw)
	return r.w.Each(content, blockKeys, "content.", "a content block is not an object", func(o *split.Object, end int) error {
		if len(r.blocks) < maxBlocks {
			r.blocks = append(r.blocks, block{*o, at + end})
		} else {
			r.w.Odd("a message has too many content blocks")
		}
		return nil
	})
}

// filePieces files each result of a user message, and the blocks between them.
func (r *reader) filePieces(message []byte, blocks []block) {
	begin := r.w.Element().From
	for len(blocks) > 0 {
		n := slices.IndexFunc(blocks, isResult)
		switch n {
		case 0:
			b := &blocks[0]
			m := session.Message{Raw: b.Raw, Kind: session.Observation, Result: b.Get("tool_use_id").Text(), Attached: anyAttached(blocks[:1])}
			m.Digest = resultDigest(r.w.Digest(), b)
			r.w.File(m, begin+b.end)
			blocks = blocks[1:]
			continue
		case -1:
			n = len(blocks)
		}
		run := blocks[:n]
		raw := message[run[0].end-len(run[0].Raw) : run[n-1].end : run[n-1].end]
		content := rawjson.Value{Kind: rawjson.Array, Raw: slices.Concat([]byte{'['}, raw, []byte{']'})}
		m := session.Message{Raw: raw, Kind: session.User, Digest: digest(r.w.Digest(), "user", content), Attached: anyAttached(run)}
		r.w.File(m, begin+run[n-1].end)
		blocks = blocks[n:]
	}
}
