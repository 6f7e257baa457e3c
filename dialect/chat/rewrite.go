package chat

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
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
	parts := append(split.Parts(a, "text"), split.Parts(b, "text")...)
	return slices.Concat(first[:from], split.List(parts), first[to:]), nil
}

// content is where a message's content stands.
func (d *Dialect) content(raw []byte) (from, to int, err error) {
	m, err := d.message(raw)
	if err != nil {
		return 0, 0, err
	}
	content := m.Get("content")
	if content.Kind == 0 {
		return 0, 0, errors.New("it has no content")
	}
	to = split.EndOf(raw, content)
	return to - len(content.Raw), to, nil
}

// Join gives a request's body with other messages in the place of its own.
func (d *Dialect) Join(r *dialect.Request, messages [][]byte) [][]byte { return r.Join(messages) }

// Compose makes a body of messages.
func (d *Dialect) Compose(messages [][]byte) []byte {
	return slices.Concat([]byte(`{"model":"","messages":[`), split.Join(messages), []byte("]}"))
}
