package overflow

import (
	"bytes"
	"slices"
	"strings"
)

// fold makes texts alike that were quoted more than once, or wrapped at different places: letters of ASCII in lower
// case, no backslashes (an escaped end of line is a space), no runs of white space.
func fold(text string) string {
	text = strings.NewReplacer(`\n`, " ", `\r`, " ", `\t`, " ", `\`, "").Replace(text)
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n\r\t", r) })
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, strings.Join(words, " "))
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
	return slices.Contains([]string{"", "data", "event", "id", "retry"}, string(name))
}
