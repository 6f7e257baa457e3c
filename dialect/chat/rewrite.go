package chat

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Rewrite replaces the content of a message, which may be a list of parts, with a string. The rest of the message stays as
// the client wrote it.
func (d *Dialect) Rewrite(raw []byte, text string) ([]byte, error) {
	from, to, err := contentSpan(raw)
	if err != nil {
		return nil, fmt.Errorf("rewrite message: %w", err)
	}
	return slices.Concat(raw[:from], rawjson.AppendQuote(nil, text), raw[to:]), nil
}

// Merge appends the content of second to that of first. Two strings become one string, otherwise the result is a list of
// all parts. The rest of first stays as the client wrote it.
func (d *Dialect) Merge(first, second []byte) ([]byte, error) {
	from, to, errFirst := contentSpan(first)
	secondFrom, secondTo, errSecond := contentSpan(second)
	if err := cmp.Or(errFirst, errSecond); err != nil {
		return nil, fmt.Errorf("merge messages: %w", err)
	}
	a, b := rawjson.ValueOf(first[from:to]), rawjson.ValueOf(second[secondFrom:secondTo])
	if a.Kind == rawjson.String && b.Kind == rawjson.String {
		return slices.Concat(first[:to-1], []byte(`\n\n`), b.Inner(), first[to-1:]), nil
	}
	parts := append(split.Parts(a, "text"), split.Parts(b, "text")...)
	return slices.Concat(first[:from], split.List(parts), first[to:]), nil
}

// contentSpan returns the position of the content in a message.
func contentSpan(raw []byte) (from, to int, err error) {
	m, err := parse(raw)
	if err != nil {
		return 0, 0, err
	}
	content := m.Get("content")
	if content.Kind == 0 {
		return 0, 0, errors.New("message has no content")
	}
	to = split.EndOffset(raw, content)
	return to - len(content.Raw), to, nil
}

// Join replaces the messages of a request.
func (d *Dialect) Join(r *dialect.Request, messages [][]byte) [][]byte { return r.Join(messages) }

// Compose returns a body with these messages and no model.
func (d *Dialect) Compose(messages [][]byte) []byte {
	return slices.Concat([]byte(`{"model":"","messages":[`), split.Join(messages), []byte("]}"))
}

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
