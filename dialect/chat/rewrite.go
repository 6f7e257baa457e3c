package chat

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Rewrite gives a message with another text as its content. Everything else of it stays as the client wrote it; a
// content that was a list of parts becomes one string.
func (d *Dialect) Rewrite(raw []byte, text string) ([]byte, error) {
	from, to, err := d.content(raw)
	if err != nil {
		return nil, fmt.Errorf("rewrite message: %w", err)
	}
	return slices.Concat(raw[:from], rawjson.AppendQuote(nil, text), raw[to:]), nil
}

// Merge gives a message with another one's content behind its own: two texts become one, and what has parts becomes a list of
// all parts. Everything else of it stays as the client wrote it.
func (d *Dialect) Merge(first, second []byte) ([]byte, error) {
	from, to, err := d.content(first)
	if err != nil {
		return nil, fmt.Errorf("merge message: %w", err)
	}
	begin, end, err := d.content(second)
	if err != nil {
		return nil, fmt.Errorf("merge message: %w", err)
	}
	a, b := rawjson.ValueOf(first[from:to]), rawjson.ValueOf(second[begin:end])
	if a.Kind == rawjson.String && b.Kind == rawjson.String {
		return slices.Concat(first[:to-1], []byte(`\n\n`), b.Inner(), first[to-1:]), nil
	}
	parts := slices.Concat(partsOf(a), partsOf(b))
	return slices.Concat(first[:from], []byte{'['}, bytes.Join(parts, []byte{','}), []byte{']'}, first[to:]), nil
}

// partsOf are the parts of a content, raw. A text is one part, and nothing is none.
func partsOf(content rawjson.Value) (parts [][]byte) {
	switch content.Kind {
	case rawjson.String:
		parts = append(parts, slices.Concat([]byte(`{"type":"text","text":`), content.Raw, []byte{'}'}))
	case rawjson.Array:
		for part := range rawjson.Elements(content.Raw) {
			parts = append(parts, part.Raw)
		}
	}
	return parts
}

// content is where a message's content stands.
func (d *Dialect) content(raw []byte) (from, to int, err error) {
	s := rawjson.NewScanner(raw, d.depth)
	if s.Object() {
		for s.Member() {
			if string(s.Key().Raw) == "content" {
				from = s.Offset()
				s.Value()
				to = s.Offset()
			}
		}
	}
	if err := s.End(); err != nil {
		return 0, 0, err
	}
	if to == 0 {
		return 0, 0, errors.New("it has no content")
	}
	return from, to, nil
}

// Join gives a request's body with other messages in the place of its own.
func (d *Dialect) Join(r *dialect.Request, messages [][]byte) [][]byte { return r.Join(messages) }

// Compose makes a body of messages.
func (d *Dialect) Compose(messages [][]byte) []byte {
	return slices.Concat([]byte(`{"model":"","messages":[`), bytes.Join(messages, []byte{','}), []byte("]}"))
}
