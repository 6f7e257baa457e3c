package ui

import (
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/excerpt"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
)

// Record is what stands in the view for all that is hidden.
type Record struct {
	Writer   string
	Tokens   int
	Grounded string
	Parts    []Part
	Missing  bool
	cost     int
}

// Part is a part of a record: what a model wrote, a person's words, or excerpts.
type Part struct {
	Title  string
	Closed bool
	Lines  []Line
	More   int // lines that are left out
}

// Line is a line of a record, linked to the messages that it comes from.
type Line struct {
	ID      string // its anchor
	Section string // its heading, if it begins with one
	Text    string
	Mark    bool   // it says where the lines after it come from
	From    []Link // the messages
}

const (
	recordBytes = 30 << 10 // of all lines that are shown of a record
	maxFrom     = 3        // messages that a line is linked to
	minQuote    = 12       // bytes of a line that identify its origin
)

// references connect the lines of a record with the hidden messages.
type references struct {
	lines []recordLine
	back  map[int][]Link // by index of the message
}

// recordLine is a line and the indexes of the messages that it comes from.
type recordLine struct {
	part int // 0: the record, 1: a person's words, 2: excerpts
	text string
	from []int
}

// findReferences looks for the origin of each line: the hidden message that holds it word for word, or the newest that holds a name in it.
func findReferences(l *layout) *references {
	r := &references{back: map[int][]Link{}}
	if l.text == "" {
		return r
	}
	s := record.Parse(l.text)
	for part, text := range []string{s.Record, s.Words, s.Excerpts} {
		for line := range strings.SplitSeq(text, "\n") {
			if strings.TrimSpace(line) != "" {
				r.lines = append(r.lines, recordLine{part: part, text: line})
			}
		}
	}
	quotes, names := l.index(r.lines)
	for i := range r.lines {
		line := &r.lines[i]
		line.from = quotes[key(line.text)]
		if len(line.from) == 0 && line.part == 0 {
			line.from = named(line.text, names)
		}
		for _, m := range line.from {
			if len(r.back[m]) < maxFrom {
				r.back[m] = append(r.back[m], Link{fmt.Sprint(i + 1), fmt.Sprintf("#r%d", i+1)})
			}
		}
	}
	return r
}

// named returns the messages that hold the names in a line.
func named(line string, names map[string]int) (from []int) {
	for name := range excerpt.Names(line) {
		if m, ok := names[name]; ok && len(from) < maxFrom && (len(from) == 0 || from[len(from)-1] != m) {
			from = append(from, m)
		}
	}
	return from
}

// index finds in the hidden messages the lines that a record quotes, and the names in it.
func (l *layout) index(lines []recordLine) (quotes map[string][]int, names map[string]int) {
	quotes, names = map[string][]int{}, map[string]int{}
	wanted, wantedNames := map[string]bool{}, map[string]bool{}
	for _, line := range lines {
		wanted[key(line.text)] = true
		if line.part == 0 {
			for name := range excerpt.Names(line.text) {
				wantedNames[name] = true
			}
		}
	}
	for i := range l.in.Messages {
		m := &l.in.Messages[i]
		if m.Content == nil || l.fate(i).Shown() {
			continue
		}
		text := written(m.Content)
		for line := range strings.SplitSeq(text, "\n") {
			if k := key(line); len(k) >= minQuote && wanted[k] && (len(quotes[k]) == 0 || quotes[k][len(quotes[k])-1] != i) && len(quotes[k]) < maxFrom {
				quotes[k] = append(quotes[k], i)
			}
		}
		if len(wantedNames) == 0 {
			continue
		}
		for name := range excerpt.Names(text) {
			if wantedNames[name] {
				names[name] = i
			}
		}
	}
	return quotes, names
}

// key is what must be the same of a quoted line and its origin.
func key(line string) string {
	line = strings.TrimSpace(line)
	if rest, quoted := strings.CutPrefix(line, "- "); quoted {
		line = rest
	}
	return strings.TrimSpace(line)
}

// recordOf shows the record.
func (l *layout) recordOf() *Record {
	r := &Record{Tokens: l.record.SummaryTokens, Writer: "excerpts, no model was asked", Grounded: l.record.Grounding.String(), cost: rowBytes}
	if l.record.Model != "" {
		r.Writer = "written by " + l.record.Model
	}
	if l.text == "" {
		r.Missing = true
		return r
	}
	parts := []Part{{}, {Title: "A person’s words, verbatim"}, {Title: "Excerpts: lines of the hidden messages, verbatim"}}
	for i, line := range l.refs.lines {
		part := &parts[line.part]
		if r.cost += escaped(line.text) + 120 + 60*len(line.from); r.cost > recordBytes {
			part.More++
			continue
		}
		part.Lines = append(part.Lines, l.lineOf(i, &line))
	}
	for i := range parts {
		parts[i].Closed = i > 0 && len(r.Parts) > 0
		if len(parts[i].Lines) > 0 || parts[i].More > 0 {
			r.Parts = append(r.Parts, parts[i])
		}
	}
	r.cost = min(r.cost, recordBytes+rowBytes)
	return r
}

func (l *layout) lineOf(i int, line *recordLine) Line {
	out := Line{ID: fmt.Sprintf("r%d", i+1), Text: visible(line.text)}
	if line.part == 0 {
		out.Section, out.Text = section(out.Text)
	}
	if line.part == 2 {
		out.Mark = strings.HasPrefix(line.text, "###")
	}
	for _, m := range line.from {
		out.From = append(out.From, Link{count(l.in.Messages[m].Pos), l.hrefOf(m)})
	}
	return out
}

// section cuts a heading such as USER_CONTEXT: or ## Decisions off the beginning of a line.
func section(line string) (heading, rest string) {
	if strings.HasPrefix(line, "#") {
		return strings.TrimLeft(line, "# "), ""
	}
	name, rest, ok := strings.Cut(line, ":")
	if !ok || len(name) > 40 || name == "" || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_ ") != "" {
		return "", line
	}
	return name, strings.TrimSpace(rest)
}
