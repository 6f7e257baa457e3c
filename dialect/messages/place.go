package messages

import (
	"bytes"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// placed moves the system messages of a history to positions that the API accepts, since messages around them may have been hidden or added.
// The API requires a user message, or an answer that ends with the result of a server's tool, before a system message, and an answer or
// the end of the history after it. Consecutive system messages count as one. A system message without content may be anywhere; it moves only
// together with others before it. One that applies only until the next user message is left out if it would have to move after that
// message, because there it would apply again.
// https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages#limitations
func placed(messages [][]byte) [][]byte {
	if !slices.ContainsFunc(messages, isSystem) {
		return messages
	}
	out, waiting := make([][]byte, 0, len(messages)), [][]byte(nil)
	accepts := false // a system message may follow the last one of out
	for _, raw := range messages {
		switch {
		case formOf(raw) == system, isSystem(raw) && len(waiting) == 0 && isEmpty(raw):
		case isSystem(raw):
			waiting = append(waiting, raw)
			continue
		case roleOf(raw).Is("assistant"):
			if accepts {
				out, waiting = append(out, waiting...), nil
			}
			accepts = endsWithResult(raw)
		default:
			waiting = slices.DeleteFunc(waiting, isScoped)
			accepts = true
		}
		out = append(out, raw)
	}
	return append(out, waiting...)
}

// roleOf returns the role of a message. The system prompt and blocks have none.
func roleOf(raw []byte) (role rawjson.Value) {
	for key, v := range rawjson.Members(raw) {
		if string(key.Raw) == "role" {
			return v
		}
	}
	return role
}

// isSystem reports whether a message is a system message in the history.
func isSystem(raw []byte) bool {
	return bytes.Contains(raw, []byte(`"system"`)) && roleOf(raw).Is("system")
}

// isScoped reports whether a system message applies only until the next user message.
func isScoped(raw []byte) bool {
	return split.Member(rawjson.ValueOf(raw), "clear_at").Is("next_user_message")
}

// isEmpty reports whether the content of a message is an empty list.
func isEmpty(raw []byte) bool {
	content := split.Member(rawjson.ValueOf(raw), "content")
	return content.Kind == rawjson.Array && !split.HasElements(content)
}

// endsWithResult reports whether an answer ends with the result of a server's tool.
func endsWithResult(raw []byte) bool {
	var last rawjson.Value
	for block := range rawjson.Elements(split.Member(rawjson.ValueOf(raw), "content").Raw) {
		last = block
	}
	return bytes.HasSuffix(split.Member(last, "type").Inner(), []byte("_tool_result"))
}
