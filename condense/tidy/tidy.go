// Package tidy writes what a tool printed as one would read it: without colours and what was overwritten, lines that repeat once, and
// JSON without white space. Nothing that it says is lost. What it gives for a text never changes: it was forwarded before.
package tidy

import (
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Text is a text tidied. What there is nothing to tidy of is given as it is.
func Text(text string) string {
	if packed, ok := packed(text); ok {
		return packed
	}
	return folded(printed(text))
}

// JSON reports whether a text may be an object or an array.
func JSON(text string) bool {
	t := strings.TrimSpace(text)
	return len(t) > 1 && (t[0] == '{' && t[len(t)-1] == '}' || t[0] == '[' && t[len(t)-1] == ']')
}

// packed is a JSON text without white space between its values, which stay as they are written.
func packed(text string) (string, bool) {
	if !JSON(text) || rawjson.Valid([]byte(text), 0) != nil {
		return "", false
	}
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			b.WriteByte(c)
			i++
		case !quoted && (c == ' ' || c == '\n' || c == '\r' || c == '\t'):
			continue
		case c == '"':
			quoted = !quoted
		}
		b.WriteByte(text[i])
	}
	return b.String(), true
}

// fewest is how many equal lines are folded at least.
const fewest = 3

// folded writes a line that stands there several times once, where that is shorter.
func folded(text string) string {
	var b strings.Builder
	done, start, n := 0, 0, 0 // written up to; where the equal lines begin, and how many they are
	last := ""
	fold := func(end int) {
		note := fmt.Sprintf("[the line above %d more times]", n-1)
		if n >= fewest && (n-1)*(len(last)+1) > len(note)+1 {
			b.WriteString(text[done:start])
			b.WriteString(last + "\n" + note)
			done = end
		}
	}
	for at := 0; at <= len(text); {
		end := len(text)
		if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n
		}
		if line := text[at:end]; n > 0 && line == last {
			n++
		} else {
			fold(max(at-1, 0))
			start, n, last = at, 1, line
		}
		at = end + 1
	}
	fold(len(text))
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}
