package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns a text that came from outside as one that cannot move the cursor, change colours or reorder what stands around it: what is
// not printable becomes a question mark.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
}

// Name returns a name that came from outside, such as that of a model, cleaned and a column wide for each character: what is not printable
// ASCII becomes a question mark.
func Name(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}

// Clip returns a text that is at most n columns wide. If something is missing, it ends in an ellipsis.
func Clip(text string, n int) string {
	switch {
	case utf8.RuneCountInString(text) <= n:
		return text
	case n <= 0:
		return ""
	}
	kept := []rune(text)[:n-1]
	return strings.TrimRight(string(kept), " ") + "…"
}

// Wrap breaks a text into lines of at most n columns, at spaces. A longer word, such as an address that someone will copy, stays whole.
func Wrap(text string, n int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= n:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
