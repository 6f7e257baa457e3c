package chat

import (
	"errors"
	"fmt"
	"slices"

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

// content is where a message's content stands.
func (d *Dialect) content(raw []byte) (from, to int, err error) {
	s := rawjson.NewScanner(raw, d.options.MaxDepth)
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
