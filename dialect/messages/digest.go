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
