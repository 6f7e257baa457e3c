package chat

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// bound reports whether the message carries reasoning that its provider bound to all that stood before it: signed or
// encrypted, and of a form that is not known to be bound otherwise.
func bound(m *split.Object) bool {
	for _, list := range [...]rawjson.Value{m.Get("thinking_blocks"), m.Get("reasoning_details")} {
		if split.Any(list, prefixBound) {
			return true
		}
	}
	return split.Any(m.Get("content"), thinkingPart)
}

// prefixBound reports whether an element of thinking_blocks or reasoning_details is sealed, and bound to what stood before it.
func prefixBound(block rawjson.Value) bool {
	sealed := len(split.Member(block, "signature").Inner()) > 0 || len(split.Member(block, "data").Inner()) > 0
	format := split.Member(block, "format")
	return sealed && (format.Kind == 0 || agents.BindingOf("reasoning_details", format.Text()) == agents.Prefix)
}

// thinkingPart reports whether a part of content is a thinking block.
func thinkingPart(part rawjson.Value) bool {
	return isThinking(split.Member(part, "type"))
}

func isThinking(kind rawjson.Value) bool { return kind.Is("thinking") || kind.Is("redacted_thinking") }

// StripReasoning gives a message without the sealed reasoning that is bound to what stood before it. All other values stay as
// the client wrote them. Content of which nothing is left becomes null next to tool calls, and the empty text without.
func (d *Dialect) StripReasoning(raw []byte) ([]byte, error) {
	m, err := d.message(raw)
	if err != nil {
		return nil, fmt.Errorf("strip reasoning: %w", err)
	}
	out := split.Keep(raw, func(name string, v *rawjson.Value) bool {
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
	value := split.Without(m.Get("content"), thinkingPart)
	switch {
	case value != nil:
		return value
	case len(m.Get("tool_calls").Raw) > 0 || m.Get("function_call").Kind == rawjson.Object:
		return []byte("null")
	}
	return []byte(`""`)
}
