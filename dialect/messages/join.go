package messages

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// form is what a raw text is.
type form int

const (
	whole  form = iota // an element of the list
	result             // a block that is the result of a call
	blocks             // other blocks of a user message
	system             // the system prompt
)

// formOf tells what a raw text is. An element has a role; a block has a type and no role.
func formOf(raw []byte) form {
	if len(raw) == 0 || raw[0] != '{' {
		return system
	}
	at := whole
	for key, v := range rawjson.Members(raw) {
		switch {
		case string(key.Raw) == "role":
			return whole
		case string(key.Raw) == "type" && v.Is("tool_result"):
			at = result
		case string(key.Raw) == "type":
			at = blocks
		}
	}
	return at
}

// Join gives a request's body with other messages in the place of its own. What stands outside the list stays as the client
// wrote it, the system prompt too. Blocks of user messages that follow each other become one message.
func (d *Dialect) Join(r *dialect.Request, messages [][]byte) [][]byte {
	parts := append(make([][]byte, 0, 2*len(messages)+2), r.Before())
	open, first := false, true
	for _, raw := range messages {
		at := formOf(raw)
		if at == system {
			continue
		}
		inside := at == result || at == blocks
		switch {
		case open && inside:
			parts = append(parts, comma, raw)
			continue
		case open:
			parts = append(parts, closing)
		}
		if !first {
			parts = append(parts, comma)
		}
		if inside {
			parts = append(parts, opening)
		}
		parts = append(parts, raw)
		open, first = inside, false
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

// Compose makes a body that has these messages, which may be nothing else than what Split gave.
func (d *Dialect) Compose(messages [][]byte) []byte {
	head := []byte(`{"model":"",`)
	for _, raw := range messages {
		if formOf(raw) == system {
			head = append(append(append(head, `"system":`...), raw...), ',')
			break
		}
	}
	head = append(head, `"messages":[`...)
	empty := &dialect.Request{Body: append(head, "]}"...), Inside: dialect.Span{From: len(head), To: len(head)}}
	return slices.Concat(d.Join(empty, messages)...)
}
