// Package tidy removes noise from the output of tools: colours, overwritten progress, repeated lines, and white space in
// JSON. No information is lost. The result for a given text must never change, because it has been forwarded before.
package tidy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Text returns text tidied, or unchanged if there is nothing to tidy.
func Text(text string) string {
	if JSON(text) && rawjson.Valid([]byte(text), 0) == nil {
		var b bytes.Buffer
		if json.Compact(&b, []byte(text)) == nil {
			return b.String()
		}
	}
	return foldRepeats(renderTerminal(text))
}

// JSON reports whether text looks like a JSON object or array, by its first and last characters.
func JSON(text string) bool {
	t := strings.TrimSpace(text)
	return len(t) > 1 && (t[0] == '{' && t[len(t)-1] == '}' || t[0] == '[' && t[len(t)-1] == ']')
}

// minRepeats is the length of the shortest run of equal lines that is folded.
const minRepeats = 3

// foldRepeats replaces a run of equal lines by one of them and a note, where that is shorter.
func foldRepeats(text string) string {
	var b strings.Builder
	written := 0 // text[:written] is in b, folded
	start, n := 0, 0
	last := "" // text[start:] begins with n lines equal to last
	fold := func(end int) {
		note := fmt.Sprintf("[the line above %d more times]", n-1)
		if n >= minRepeats && (n-1)*(len(last)+1) > len(note)+1 {
			b.WriteString(text[written:start] + last + "\n" + note)
			written = end
		}
	}
	for at := 0; at <= len(text); {
		line, _, _ := strings.Cut(text[at:], "\n")
		if n > 0 && line == last {
			n++
		} else {
			fold(max(at-1, 0))
			start, n, last = at, 1, line
		}
		at += len(line) + 1
	}
	fold(len(text))
	return b.String() + text[written:]
}
