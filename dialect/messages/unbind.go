package messages

import (
	"bytes"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

var _ dialect.Unbinder = (*Dialect)(nil)

// Unbind implements dialect.Unbinder: thinking that stands behind another history than it was made for is dropped, not refused.
// https://docs.claude.com/en/docs/build-with-claude/extended-thinking
func (d *Dialect) Unbind(r *dialect.Request, parts [][]byte) [][]byte {
	for key, v := range rawjson.Members(r.Body) {
		if string(key.Raw) != "thinking" || v.Kind != rawjson.Object {
			continue
		}
		for inner := range rawjson.Members(v.Raw) {
			if string(inner.Raw) == "block_binding" {
				return parts
			}
		}
		return insert(parts, r, offset(r.Body, v.Raw)+len(v.Raw)-1)
	}
	return parts
}

// Unbinding implements dialect.Unbinder.
func (d *Dialect) Unbinding() (name, value string) {
	return "Anthropic-Beta", "thinking-binding-controls-2026-08-01"
}

// insert puts the wish at the end of the object whose closing brace stands at that byte of the body.
func insert(parts [][]byte, r *dialect.Request, at int) [][]byte {
	wish := []byte(`,"block_binding":{"prefix_mismatch_behavior":"drop_block"}`)
	last := len(parts) - 1
	if at < r.Inside.From {
		return append([][]byte{r.Body[:at], wish, r.Body[at:r.Inside.From]}, parts[1:]...)
	}
	return append(parts[:last:last], r.Body[r.Inside.To:at], wish, r.Body[at:])
}

// offset is where a part of a text begins in it.
func offset(text, part []byte) int {
	for at := 0; ; at++ {
		at += bytes.Index(text[at:], part)
		if &text[at] == &part[0] {
			return at
		}
	}
}
