package messages

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Rewrite replaces the content of a message with text. The rest of the message stays as the client wrote it. A run of
// blocks becomes one text block. The system prompt cannot be rewritten.
func (d *Dialect) Rewrite(raw []byte, text string) ([]byte, error) {
	p, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("rewrite message: %w", err)
	}
	switch p.form {
	case system:
		return nil, errors.New("rewrite message: cannot rewrite the system prompt")
	case blocks:
		return append(rawjson.AppendQuote([]byte(`{"type":"text","text":`), text), '}'), nil
	}
	return split.WithMember(raw, "content", rawjson.AppendQuote(nil, text)), nil
}

// StripReasoning removes the thinking from a message. The API rejects a message without content, so a message with nothing
// but thinking gets a text instead.
func (d *Dialect) StripReasoning(raw []byte) ([]byte, error) {
	p, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("strip reasoning: %w", err)
	}
	if p.form != whole || p.content.Kind != rawjson.Array {
		return raw, nil
	}
	left := split.Without(p.content, func(block rawjson.Value) bool { return isThinking(split.Member(block, "type")) })
	if left == nil {
		left = []byte(`[{"type":"text","text":"(no text)"}]`)
	}
	return split.WithMember(raw, "content", left), nil
}

// Merge appends the content of second to that of first. Both are user messages.
func (d *Dialect) Merge(first, second []byte) ([]byte, error) {
	a, errFirst := blocksOf(first)
	b, errSecond := blocksOf(second)
	if err := cmp.Or(errFirst, errSecond); err != nil {
		return nil, fmt.Errorf("merge messages: %w", err)
	}
	merged := append(a, b...)
	if formOf(first) != whole {
		return split.Join(merged), nil
	}
	return split.WithMember(first, "content", split.List(merged)), nil
}

// blocksOf returns the raw blocks of a message. String content is one text block.
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
