package overflow

import (
	"bytes"
	"strings"
)

// fold makes texts alike that were quoted more than once, or wrapped at different places: letters of ASCII in lower
// case, no backslashes (an escaped end of line is a space), no runs of white space.
func fold(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	space := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '\\' {
			i += escape(text[i+1:], &c)
		}
		switch {
		case c == '\\':
			continue
		case c == ' ' || c == '\n' || c == '\r' || c == '\t':
			space = true
			continue
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		b.WriteByte(c)
	}
	return b.String()
}

// escape reads what follows a backslash. If that is the n of an escaped end of line, c becomes a space, and one byte is
// taken.
func escape(rest string, c *byte) int {
	if rest == "" || (rest[0] != 'n' && rest[0] != 'r' && rest[0] != 't') {
		return 0
	}
	*c = ' '
	return 1
}

// payload is the data of the first event if body is an event stream, else body.
// See https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream.
func payload(body []byte) []byte {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	var data []byte
	stream := false
	for rest := body; len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		name, value, isField := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0 && data != nil:
			return data
		case len(line) == 0:
		case !isField || !field(name):
			if !stream {
				return body
			}
		default:
			stream = true
			if string(name) == "data" {
				data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
			}
		}
	}
	if !stream {
		return body
	}
	return data
}

// field reports whether a line of this name belongs to an event stream. That of a comment has none.
func field(name []byte) bool {
	switch string(name) {
	case "", "data", "event", "id", "retry":
		return true
	default:
		return false
	}
}
