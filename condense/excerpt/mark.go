package excerpt

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// markOpen begins a mark. No line that begins with it is quoted, so a message cannot write marks of its own.
const markOpen = "###"

// markLength is how much of a call's argument a mark shows, in bytes.
const markLength = 80

// String is the mark as it is written.
func (m *mark) String() string {
	if m.event == 0 {
		return m.text
	}
	return markOpen + " event " + strconv.Itoa(m.event) + strings.TrimPrefix(m.text, markOpen)
}

// markOf says where lines come from: who wrote them, or for the result of a call the call.
func (x *Index) markOf(m Message) string {
	switch {
	case m.Kind == session.User && !m.Injected:
		return markOpen + " user"
	case m.Kind == session.Agent || m.Kind == session.Action:
		return markOpen + " assistant"
	}
	if call, known := x.calls[m.Content.Result]; known {
		return call
	}
	return strings.TrimSpace(markOpen + " result " + oneLine(m.Content.Name))
}

// callMark is the mark of a call's result: its name and the path it is about.
func callMark(c session.Call) string {
	argument := ""
	Values(c.Arguments, func(v string) {
		if argument == "" && len(v) <= markLength && strings.ContainsAny(v, "/.") && !strings.ContainsAny(v, " \n") {
			argument = v
		}
	})
	return strings.TrimSpace(markOpen + " " + oneLine(c.Name) + " " + argument)
}

// oneLine is the beginning of a text as far as it fits a mark.
func oneLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return strings.ToValidUTF8(text[:min(len(text), markLength)], "")
}

// Values gives the strings and numbers in a JSON text, keys left out. What is no JSON is a text.
func Values(json string, emit func(string)) {
	json = strings.TrimSpace(json)
	if json == "" || json[0] != '{' && json[0] != '[' {
		emit(json)
		return
	}
	for i := 0; i < len(json); {
		switch c := json[i]; {
		case c == '"':
			end := closing(json, i+1)
			value := json[i+1 : min(end, len(json))]
			i = end + 1
			for i < len(json) && json[i] <= ' ' {
				i++
			}
			if i >= len(json) || json[i] != ':' {
				emit(unescape(value))
			}
		case '0' <= c && c <= '9':
			from := i
			for i < len(json) && strings.IndexByte(",]} \n\t\r", json[i]) < 0 {
				i++
			}
			emit(json[from:i])
		default:
			i++
		}
	}
}

// closing is where the string ends that begins at i.
func closing(json string, i int) int {
	for i < len(json) && json[i] != '"' {
		if json[i] == '\\' {
			i++
		}
		i++
	}
	return i
}

// unescape makes the escapes of JSON what they stand for. What is no escape stays as it is.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n', 'r':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case '"', '/', '\\':
			b.WriteByte(s[i])
		case 'u':
			r, size := escaped(s[i-1:])
			b.WriteRune(r)
			i += size - 2
		default:
			b.WriteString(s[i-1 : i+1])
		}
	}
	return b.String()
}

// escaped is the character that an escape such as \u0026 at the beginning of s stands for, with the escape of its other half if it has
// one, and the length of both. What is no such escape stands for no
// character, as half of one does.
func escaped(s string) (r rune, size int) {
	const length = len(`\u0026`)
	half := func(s string) rune {
		if len(s) < length || s[:2] != `\u` {
			return -1
		}
		n, err := strconv.ParseUint(s[2:length], 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	switch r = half(s); {
	case r < 0:
		return utf8.RuneError, 2
	case utf16.IsSurrogate(r):
		if whole := utf16.DecodeRune(r, half(s[length:])); whole != utf8.RuneError {
			return whole, 2 * length
		}
		return utf8.RuneError, length
	}
	return r, length
}
