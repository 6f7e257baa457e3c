package excerpt

import (
	"iter"
	"strconv"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// markOpen begins a mark. Lines that begin with it are not quoted, so a message cannot forge a mark.
const markOpen = "###"

// maxMarkBytes is the maximum length of a name or an argument in a mark.
const maxMarkBytes = 80

// String returns the text of the mark.
func (m *mark) String() string {
	if m.event == 0 {
		return m.text
	}
	return markOpen + " event " + strconv.Itoa(m.event) + strings.TrimPrefix(m.text, markOpen)
}

// markOf returns the mark for the lines of a message: its author, or for a tool result its call.
func (x *Index) markOf(m Message) string {
	switch {
	case m.Kind == session.User && !m.Injected:
		return markOpen + " user"
	case m.Kind.ByModel():
		return markOpen + " assistant"
	}
	if call, known := x.calls[m.Content.Result]; known {
		return call
	}
	return strings.TrimSpace(markOpen + " result " + oneLine(m.Content.Name))
}

// callMark returns the mark of a call's result: the tool's name and the path or URL that it was given.
func callMark(c session.Call) string {
	mark := markOpen + " " + oneLine(c.Name) + " "
	for v := range Values(c.Arguments) {
		if len(v) <= maxMarkBytes && strings.ContainsAny(v, "/.") && !strings.ContainsAny(v, " \n") {
			return strings.TrimSpace(mark + v)
		}
	}
	return strings.TrimSpace(mark)
}

// oneLine returns the first line of a text, cut to fit a mark.
func oneLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return strings.ToValidUTF8(text[:min(len(text), maxMarkBytes)], "")
}

// Values iterates over the strings and numbers in a JSON text, except for keys. A text that is not a JSON object or array is
// a single value. Invalid JSON is read as far as possible.
func Values(json string) iter.Seq[string] {
	return func(yield func(string) bool) {
		json = strings.TrimSpace(json)
		if json == "" || json[0] != '{' && json[0] != '[' {
			yield(json)
			return
		}
		for i := 0; i < len(json); {
			value, isValue := "", false
			switch c := json[i]; {
			case c == '"':
				end := closingQuote(json, i+1)
				value = json[i+1 : min(end, len(json))]
				i = end + 1
				for i < len(json) && json[i] <= ' ' {
					i++
				}
				isValue = i >= len(json) || json[i] != ':'
				if isValue {
					value = unescape(value)
				}
			case '0' <= c && c <= '9':
				from := i
				for i < len(json) && strings.IndexByte(",]} \n\t\r", json[i]) < 0 {
					i++
				}
				value, isValue = json[from:i], true
			default:
				i++
			}
			if isValue && !yield(value) {
				return
			}
		}
	}
}

// closingQuote returns the index of the quote that ends the string contents at i, or at least len(json).
func closingQuote(json string, i int) int {
	for i < len(json) && json[i] != '"' {
		if json[i] == '\\' {
			i++
		}
		i++
	}
	return i
}

// unescape resolves the escapes of a JSON string. Each line end, CR or LF, becomes LF.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	text, _ := rawjson.AppendUnquote(make([]byte, 0, len(s)), []byte(s))
	return strings.ReplaceAll(string(text), "\r", "\n")
}
