package messages

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// form is the form of the raw text of a message.
type form int

const (
	whole  form = iota // an element of the list
	result             // a block with the result of a call
	blocks             // other blocks of a user message
	system             // the system prompt
)

// formOf returns the form of a raw text. An element of the list has a role; a block has a type and no role.
func formOf(raw []byte) form {
	if len(raw) == 0 || raw[0] != '{' {
		return system
	}
	f := whole
	for key, v := range rawjson.Members(raw) {
		switch {
		case string(key.Raw) == "role":
			return whole
		case string(key.Raw) == "type" && v.Is("tool_result"):
			f = result
		case string(key.Raw) == "type":
			f = blocks
		}
	}
	return f
}

// Join replaces the messages of a request. The rest of the body, including the system prompt, stays as the client wrote it.
// Consecutive results and other blocks form one user message, and system messages stand where the API accepts them.
func (d *Dialect) Join(r *dialect.Request, messages [][]byte) [][]byte {
	parts := append(make([][]byte, 0, 2*len(messages)+2), r.Before())
	open := false // a user message
	for _, raw := range placed(messages) {
		f := formOf(raw)
		if f == system {
			continue
		}
		isBlock := f == result || f == blocks
		if open && !isBlock {
			parts = append(parts, closing)
		}
		if len(parts) > 1 {
			parts = append(parts, comma)
		}
		if isBlock && !open {
			parts = append(parts, opening)
		}
		parts = append(parts, raw)
		open = isBlock
	}
	if open {
		parts = append(parts, closing)
	}
	return append(parts, r.After())
}

var (
	comma   = []byte{','}
	opening = []byte(`{"role":"user","content":[`)
	closing = []byte("]}")
)

// Compose returns a body with these messages and no model. They must have been returned by Split, Note or Reply.
func (d *Dialect) Compose(messages [][]byte) []byte {
	head := []byte(`{"model":"",`)
	for _, raw := range messages {
		if formOf(raw) == system {
			head = slices.Concat(head, []byte(`"system":`), raw, []byte{','})
			break
		}
	}
	head = append(head, `"messages":[`...)
	empty := &dialect.Request{Body: append(head, "]}"...), ListSpan: dialect.Span{From: len(head), To: len(head)}}
	return slices.Concat(d.Join(empty, messages)...)
}
