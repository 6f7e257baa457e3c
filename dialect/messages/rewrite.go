package messages

import (
	"errors"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Rewrite gives a message with another text in the place of its content. Everything else of it stays as the client wrote it.
func (d *Dialect) Rewrite(raw []byte, text string) ([]byte, error) {
	p, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("rewrite message: %w", err)
	}
	switch p.form {
	case system:
		return nil, errors.New("rewrite message: it is the system prompt")
	case blocks:
		return append(rawjson.AppendQuote([]byte(`{"type":"text","text":`), text), '}'), nil
	}
	return split.WithMember(raw, "content", rawjson.AppendQuote(nil, text)), nil
}

// StripReasoning gives a message without its thinking. The API takes no message without content, so that a text takes the place
// of thinking that stood alone.
func (d *Dialect) StripReasoning(raw []byte) ([]byte, error) {
	p, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("strip reasoning: %w", err)
	}
	if p.form != whole || p.content.Kind != rawjson.Array {
		return raw, nil
	}
	left := split.Without(p.content, func(block rawjson.Value) bool { return isThinking(split.Member(block, "type")) })
	switch {
	case left == nil:
		left = []byte(`[{"type":"text","text":"(no text)"}]`)
	case len(left) == len(p.content.Raw):
		return raw, nil
	}
	return split.WithMember(raw, "content", left), nil
}

// Merge gives the first of two user messages with the content of the second behind its own.
func (d *Dialect) Merge(first, second []byte) ([]byte, error) {
	a, err := blocksOf(first)
	if err != nil {
		return nil, fmt.Errorf("merge message: %w", err)
	}
	b, err := blocksOf(second)
	if err != nil {
		return nil, fmt.Errorf("merge message: %w", err)
	}
	merged := append(a, b...)
	if formOf(first) != whole {
		return split.Join(merged), nil
	}
	return split.WithMember(first, "content", split.List(merged)), nil
}

// blocksOf are the blocks of a message, raw. A text is one.
func blocksOf(raw []byte) (blocks [][]byte, err error) {
	p, err := parse(raw)
	if err != nil {
		return nil, err
	}
	if p.form == result {
		return [][]byte{raw}, nil
	}
	return split.Parts(p.content, "text"), nil
}
