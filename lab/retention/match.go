package retention

import (
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/recall"
)

// lines gives the lines of text that name a reference.
func lines(text, reference string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if recall.Names(line, reference) {
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
