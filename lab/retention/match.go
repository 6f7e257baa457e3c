package retention

import (
	"strings"
	"unicode/utf8"
)

// names reports whether text names a reference: it is there, and no part of a longer word.
func names(text, reference string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], reference)
		if at < 0 {
			return false
		}
		at += from
		if apart(text, at, at+len(reference)) {
			return true
		}
		from = at + 1
	}
}

// apart reports whether text[from:to] begins and ends where words do.
func apart(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	first, _ := utf8.DecodeRuneInString(text[from:])
	last, _ := utf8.DecodeLastRuneInString(text[:to])
	return !(isWord(before) && isWord(first)) && !(isWord(last) && isWord(after))
}

// lines gives the lines of text that name a reference.
func lines(text, reference string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if names(line, reference) {
			out = append(out, line)
		}
	}
	return out
}

// words counts the words of a line.
func words(line string) map[string]int {
	out := map[string]int{}
	for _, w := range strings.FieldsFunc(line, func(r rune) bool { return !isWord(r) }) {
		out[w]++
	}
	return out
}

// survived reports whether at least half of a source line's words are in another line.
func survived(source, line map[string]int) bool {
	total, kept := 0, 0
	for w, n := range source {
		total += n
		kept += min(n, line[w])
	}
	return 2*kept >= total
}
