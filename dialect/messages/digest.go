package messages

import (
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// The canonical form of a message is the version below, followed by frames for its role and its content (see
// split.Digest.Content). That of a result has the role "tool", the id of the call, whether the call failed, and the content.
// Thinking and cache_control are ignored.
const version = "dewpoint/messages/1\n"

// Fields of a frame.
const (
	fieldRole    = 'r'
	fieldContent = 'c'
	fieldPart    = 'p'
	fieldResult  = 'R'
	fieldFailed  = 'e'
)

func digest(h *split.Digest, role string, content rawjson.Value) session.Hash {
	h.Begin()
	h.Word(fieldRole, role)
	h.Content(fieldContent, fieldPart, content)
	return h.End()
}

func resultDigest(h *split.Digest, b *block) session.Hash {
	h.Begin()
	h.Word(fieldRole, "tool")
	h.Value(fieldResult, b.Get("tool_use_id"))
	if b.Get("is_error").Kind == rawjson.True {
		h.Mark(fieldFailed)
	}
	h.Content(fieldContent, fieldPart, b.Get("content"))
	return h.End()
}
