package chat

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// hasBoundReasoning reports whether a message contains reasoning that its provider bound to all preceding messages: signed
// or encrypted, in a format that is not known to be bound in another way.
func hasBoundReasoning(m *split.Object) bool {
	return split.Any(m.Get("thinking_blocks"), prefixBound) || split.Any(m.Get("reasoning_details"), prefixBound) ||
		split.Any(m.Get("content"), thinkingPart)
}

// prefixBound reports whether an element of thinking_blocks or reasoning_details is sealed and bound to all preceding
// messages.
func prefixBound(block rawjson.Value) bool {
	sealed := len(split.Member(block, "signature").Inner()) > 0 || len(split.Member(block, "data").Inner()) > 0
	return sealed && agents.PrefixBound(split.Member(block, "format").Text())
}

// thinkingPart reports whether a content part is a thinking block.
func thinkingPart(part rawjson.Value) bool {
	return isThinking(split.Member(part, "type"))
}

func isThinking(kind rawjson.Value) bool { return kind.Is("thinking") || kind.Is("redacted_thinking") }

// StripReasoning removes reasoning that is bound to the preceding messages. All other values stay as the client wrote them.
// If no content is left, it becomes null in a message with calls, and otherwise "".
func (d *Dialect) StripReasoning(raw []byte) ([]byte, error) {
	m, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("strip reasoning: %w", err)
	}
	out := split.FilterMembers(raw, func(name string, v *rawjson.Value) bool {
		switch name {
		case "thinking_blocks":
			return false
		case "reasoning_details":
			v.Raw = split.Without(*v, prefixBound)
		case "content":
			v.Raw = contentWithoutThinking(&m)
		}
		return v.Raw != nil
	})
	return append(out, '}'), nil
}

func contentWithoutThinking(m *split.Object) []byte {
	if rest := split.Without(m.Get("content"), thinkingPart); rest != nil {
		return rest
	}
	if len(m.Get("tool_calls").Raw) > 0 || m.Get("function_call").Kind == rawjson.Object {
		return []byte("null")
	}
	return []byte(`""`)
}
