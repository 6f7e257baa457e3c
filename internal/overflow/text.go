package overflow

import (
	"bytes"
	"slices"
	"strings"
)

// unescape undoes the quoting of texts that were quoted once or more often.
var unescape = strings.NewReplacer(`\n`, " ", `\r`, " ", `\t`, " ", `\`, "")

// fold normalises a text, so that differences in quoting and line wrapping do not matter: ASCII letters in lower case,
// no backslashes (an escaped line end is a space), and single spaces as the only white space.
func fold(text string) string {
	words := strings.FieldsFunc(unescape.Replace(text), func(r rune) bool { return strings.ContainsRune(" \n\r\t", r) })
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, strings.Join(words, " "))
}

// payload returns the data of the first event if body is an event stream, and body otherwise.
// See https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream.
func payload(body []byte) []byte {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	var data []byte
	stream := false
	for rest := body; len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			if data != nil {
				return data
			}
			continue
		}
		name, value, isField := bytes.Cut(line, []byte(":"))
		if !isField || !isEventField(name) {
			if !stream {
				return body
			}
			continue
		}
		stream = true
		if string(name) == "data" {
			data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
			data = append(data, '\n')
		}
	}
	if !stream {
		return body
	}
	return data
}

// isEventField reports whether a field of this name belongs to an event stream. A comment's name is empty.
func isEventField(name []byte) bool {
	return slices.Contains([]string{"", "data", "event", "id", "retry"}, string(name))
}
