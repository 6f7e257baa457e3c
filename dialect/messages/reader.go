package messages

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// The known keys of an element of the list, and of a content block.
var (
	messageKeys = []string{"role", "content"}
	blockKeys   = []string{
		"type", "text", "id", "name", "input", "tool_use_id", "content", "is_error",
		"thinking", "signature", "data", "source", "title", "caller",
	}
)

// block is a content block.
type block struct {
	split.Object
	end int // offset of its end in the message
}

// is reports whether the block is of a type.
func (b *block) is(kind string) bool { return b.Get("type").Is(kind) }

func isResult(b block) bool { return b.is("tool_result") }

// sealed reports whether the block is reasoning that is bound to all preceding messages.
func (b *block) sealed() bool {
	return b.is("redacted_thinking") || b.is("thinking") && len(b.Get("signature").Inner()) > 0
}

// hasAttachment reports whether one of the blocks, or a part of a result, is anything but text, thinking or a call.
func hasAttachment(blocks []block) bool {
	return slices.ContainsFunc(blocks, func(b block) bool {
		if !isResult(b) {
			return !isPlain(b.Get("type"))
		}
		content := b.Get("content")
		return content.Kind == rawjson.Array && split.Any(content, func(part rawjson.Value) bool {
			return !isPlain(split.Member(part, "type"))
		})
	})
}

// loadsTool reports whether a result refers to a tool whose definition it loads.
func loadsTool(result *block) bool {
	content := result.Get("content")
	return content.Kind == rawjson.Array && split.Any(content, func(part rawjson.Value) bool { return split.Member(part, "type").Is("tool_reference") })
}

func isPlain(kind rawjson.Value) bool {
	return kind.Is("text") || isThinking(kind) || kind.Is("tool_use")
}

func isThinking(kind rawjson.Value) bool { return kind.Is("thinking") || kind.Is("redacted_thinking") }

// reader reads the messages of one body.
type reader struct {
	w      *split.Walker
	blocks []block // of the current message
}

// maxBlocks limits the blocks of one message.
const maxBlocks = 16 << 10

// element reads one element of messages, and adds it as a whole or in pieces.
func (r *reader) element(msg *split.Object) error {
	if err := r.readBlocks(msg.Raw, msg.Get("content")); err != nil {
		return err
	}
	blocks := r.blocks
	m, role := session.Message{Raw: msg.Raw}, msg.Get("role")
	switch {
	case role.Is("assistant"):
		m.Kind = session.Agent
		if len(blocks) > 0 && blocks[0].is(compaction) { // it replaces the preceding messages, so it must not be hidden
			m.Kind = session.System
		}
		for i := range blocks {
			m.Sealed = m.Sealed || blocks[i].sealed()
			m.Lasts = m.Lasts || blocks[i].is("tool_search_tool_result")
			if blocks[i].is("tool_use") {
				m.Calls = append(m.Calls, blocks[i].Get("id").Text())
				m.Kind = session.Action
			}
		}
		linkServerCalls(&m, blocks)
	case role.Is("user") && slices.ContainsFunc(blocks, isResult):
		if msg.More {
			r.w.Unsupported("a message with results has unknown members")
		}
		r.addPieces(msg.Raw, blocks)
		return nil
	case role.Is("user"):
		m.Kind = session.User
	case role.Is("system"):
		m.Kind = session.System
	default:
		r.w.Unsupported("a message has an unknown role")
		return nil
	}
	m.Digest = r.w.Digest.Message(role.Text(), msg.Get("content"))
	m.Attached = hasAttachment(blocks)
	r.w.Add(m, r.w.ElementSpan().To)
	return nil
}

// linkServerCalls links assistant messages by the calls of the provider's own tools. It adds to m.Calls the calls that have no result yet
// at the end of the message, and sets m.Result to the first call of an earlier message that this one answers or mentions. The result is in a
// later message if the model calls the client's tools too, if the provider pauses the turn, or if the called code calls the client's
// tools.
func linkServerCalls(m *session.Message, blocks []block) {
	waits := map[string]bool{} // the calls made or mentioned so far: whether they wait for a result
	mention := func(id rawjson.Value, made, answered bool) {
		if call := id.Text(); call != "" {
			if _, known := waits[call]; !known && !made {
				m.Result = cmp.Or(m.Result, call)
			}
			waits[call] = !answered
		}
	}
	for i := range blocks {
		b := &blocks[i]
		mention(split.Member(b.Get("caller"), "tool_id"), false, false)
		if bytes.HasSuffix(b.Get("type").Inner(), []byte("_tool_use")) {
			mention(b.Get("id"), true, false)
		}
		mention(b.Get("tool_use_id"), false, true)
	}
	for _, call := range slices.Sorted(maps.Keys(waits)) {
		if waits[call] {
			m.Calls = append(m.Calls, call)
		}
	}
}

// readBlocks reads the content blocks of a message.
func (r *reader) readBlocks(message []byte, content rawjson.Value) error {
	r.blocks = r.blocks[:0]
	if content.Kind != rawjson.Array {
		return nil
	}
	at := split.EndOffset(message, content) - len(content.Raw)
	return r.w.EachObject(content, blockKeys, "content.", "a content block is not an object", func(o *split.Object, end int) error {
		if len(r.blocks) < maxBlocks {
			r.blocks = append(r.blocks, block{*o, at + end})
		} else {
			r.w.Unsupported("a message has too many content blocks")
		}
		return nil
	})
}

// addPieces adds each result of a user message, and each run of other blocks, as a message.
func (r *reader) addPieces(message []byte, blocks []block) {
	start := r.w.ElementSpan().From
	for len(blocks) > 0 {
		n := slices.IndexFunc(blocks, isResult)
		if n < 0 {
			n = len(blocks)
		}
		piece := blocks[:max(n, 1)]
		first, to := &piece[0], piece[len(piece)-1].end
		m := session.Message{Raw: message[first.end-len(first.Raw) : to : to], Attached: hasAttachment(piece)}
		if n == 0 {
			m.Kind, m.Result, m.Digest = session.Observation, first.Get("tool_use_id").Text(), resultDigest(&r.w.Digest, first)
			m.Lasts = loadsTool(first)
		} else {
			content := rawjson.Value{Kind: rawjson.Array, Raw: slices.Concat([]byte{'['}, m.Raw, []byte{']'})}
			m.Kind, m.Digest = session.User, r.w.Digest.Message("user", content)
		}
		r.w.Add(m, start+to)
		blocks = blocks[len(piece):]
	}
}

// The canonical form of a message is the version below, followed by frames for its role and its content (see split.Digest.Content). For a
// result, the frames are the role "tool", the id of the call, whether the call failed, and the content. Thinking and cache_control are
// ignored.
const version = "dewpoint/messages/1\n"

// Fields of a frame, in addition to those of all dialects.
const (
	fieldResult = 'R'
	fieldFailed = 'e'
)

func resultDigest(h *split.Digest, b *block) session.Hash {
	h.Begin("tool")
	h.Value(fieldResult, b.Get("tool_use_id"))
	if b.Get("is_error").Kind == rawjson.True {
		h.Mark(fieldFailed)
	}
	h.Content(split.FieldContent, b.Get("content"))
	return h.End()
}
