// Package ground checks a record against the texts that its writer was shown: what a line names must occur in them, or the line is
// struck out. It is pure, takes time linear in its inputs, and holds nothing of the shown texts but what the record asks for.
package ground

import (
	"math"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
)

// Result is a checked record.
type Result struct {
	Record   string   // without the lines that were struck out, and without the headings that have lost all their lines
	Struck   []Struck // lines that name something that was not shown, in order
	Lines    int      // lines that name something
	Grounded int      // those of them that stay
}

// minStruck is the number of struck lines from which a record may be refused for them. One alone may be a mistake.
const minStruck = 2

// Enough reports whether so few of the lines had to go that what is left is a record: half of those that name something stay, or all but
// one. lab/grounding.md has the figures behind it.
func (r Result) Enough() bool { return 2*r.Grounded >= r.Lines || len(r.Struck) < minStruck }

// Struck is a line that was struck out.
type Struck struct {
	Line    string
	Missing []string // what it names that was not shown
}

// Check strikes out the lines of a record that name something that no shown text has: a path, URL, id, hash, number, name of code, or
// quoted text. A line that names nothing stays and does not count. The texts may be JSON, escaped as often as Claude Code's logs are.
func Check(text string, shown ...string) Result {
	lines := readLines(text)
	w := &wanted{words: map[uint64]bool{}, integers: map[uint64]bool{}, prefixes: map[int]bool{}, derived: map[float64]bool{}}
	for i := range lines {
		for _, c := range lines[i].claims {
			c.request(w)
		}
	}
	for _, s := range shown {
		w.find(s)
	}
	return strike(lines, w)
}

// line is a line of a record.
type line struct {
	text   string
	level  int // of a heading, 1 for the topmost; 0: none
	bare   bool
	claims []claim
}

// readLines returns the lines of a record with what they claim.
func readLines(text string) (lines []line) {
	var numbers []float64
	for l := range strings.SplitSeq(text, "\n") {
		out := line{text: l}
		body := l
		if name, rest, ok := record.Heading(strings.TrimRight(l, " \t\r")); ok {
			out.level, out.bare, body = levelOf(l), strings.TrimSpace(rest) == "", rest
			if strings.HasPrefix(l, "#") {
				body = name
			}
		}
		out.claims, numbers = claimsOf(body, numbers)
		lines = append(lines, out)
	}
	return lines
}

// levelOf returns the level of a heading: markdown's, and one below them for "NAME:" and "**Name**:".
func levelOf(heading string) int {
	const lowest = 7
	if n := len(heading) - len(strings.TrimLeft(heading, "#")); n > 0 {
		return min(n, lowest-1)
	}
	return lowest
}

// strike returns the result for lines whose claims were looked for. A heading that stood above struck lines only goes with them.
func strike(lines []line, w *wanted) (r Result) {
	var kept []line
	struck := false // a line went since the newest kept one
	prune := func(level int) {
		below := math.MaxInt // level of the heading that went
		for end := len(kept); struck && end > 0; {
			end--
			switch l := kept[end]; {
			case l.bare && level <= l.level && l.level < below:
				kept, below = kept[:end], l.level
			case !isBlank(l):
				return
			}
		}
	}
	for _, l := range lines {
		if len(l.claims) > 0 {
			r.Lines++
			if missing := w.missing(l.claims); len(missing) > 0 {
				r.Struck = append(r.Struck, Struck{l.text, missing})
				struck = true
				continue
			}
			r.Grounded++
		}
		if l.level > 0 {
			prune(l.level)
		}
		kept = append(kept, l)
		struck = struck && isBlank(l)
	}
	prune(1)
	texts := make([]string, len(kept))
	for i, l := range kept {
		texts[i] = l.text
	}
	r.Record = strings.TrimSpace(strings.Join(texts, "\n"))
	return r
}

func isBlank(l line) bool { return strings.TrimSpace(l.text) == "" }

// missing returns the claims of a line that were not found.
func (w *wanted) missing(claims []claim) (texts []string) {
	for i := range claims {
		if c := &claims[i]; !c.found(w) {
			texts = append(texts, c.text)
		}
	}
	return texts
}
