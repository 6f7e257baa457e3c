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
	fields := []string{"", "data", "event", "id", "retry"} // a comment's name is empty
	var data []byte
	stream := false
	for line := range bytes.Lines(body) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		name, value, isField := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) == 0 && data != nil:
			return data
		case isField && slices.Contains(fields, string(name)):
			stream = true
			if string(name) == "data" {
				data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
			}
		case len(line) > 0 && !stream:
			return body
		}
	}
	if !stream {
		return body
	}
	return data
}
