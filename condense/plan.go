package condense

import (
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
)

// Bounds of a summary made in parts.
const (
	maxCalls   = 8    // of one job: parts, what merges them, and a second try
	partLength = 2000 // runes to which events are cut before they are read in parts instead
	minPart    = 200  // tokens that the record of a part may have at least
)

// plan is the prompts that a span is read by: one for all of it, or one for each part.
type plan struct {
	texts  []string
	limit  int // runes to which the text of an event was cut
	output int // tokens that the record of a part may have; 0: there is one part
}

// frame is what a plan has to keep to.
type frame struct {
	limit  int // runes of an event's text
	budget int // tokens of a prompt
	calls  int // that may be made
	output int // tokens of a record
	count  func(string) int
}

// plan fits the events into one prompt, cut to f.limit runes and then to fewer. Below partLength they are rather read in
// parts, each in a prompt of its own, whose records are merged by a last call. When that would take too many calls,
// events are cut shorter still; in the end those in the middle are left out.
func (p prompt) plan(f frame) (plan, error) {
	for limit := f.limit; ; limit = max(limit/2, min(partLength, f.limit)) {
		text := p.text(p.render(limit))
		if f.count(text) <= f.budget {
			return plan{texts: []string{text}, limit: limit}, nil
		}
		if limit <= partLength {
			break
		}
	}
	if output := p.partOutput(f); output >= minPart {
		return p.split(f, output)
	}
	return p.fit(min(partLength, f.limit), f.budget, f.count)
}

// partOutput is how long the record of a part may be, so that all of them fit the last call's prompt; 0 if there are not
// calls enough for two parts and that one.
func (p prompt) partOutput(f frame) int {
	if f.calls < 3 {
		return 0
	}
	room := f.budget - f.count(p.merge(nil))
	return min(f.output, room/(f.calls-1)-2*f.count(partOpen(1, 1)))
}

// split reads the events in as many parts as it takes, at most all calls but one.
func (p prompt) split(f frame, output int) (plan, error) {
	for limit := min(partLength, f.limit); ; limit = max(limit/2, minEventLength) {
		groups := p.groups(f, limit)
		if len(groups) < f.calls {
			return p.parts(groups, limit, output)
		}
		if limit <= minEventLength {
			groups = append(groups[:1:1], groups[len(groups)-f.calls+2:]...)
			return p.parts(groups, limit, output)
		}
	}
}

// group is consecutive events that are read together.
type group struct {
	from, to int
	text     []string
}

// groups packs the events, as many as fit a prompt. What does not even fit alone is left out.
func (p prompt) groups(f frame, limit int) []group {
	p.part = partNote(maxCalls, maxCalls)
	room := f.budget - f.count(p.text([]string{p.omitted(0, len(p.events))}))
	var groups []group
	used := room + 1
	for i, text := range p.render(limit) {
		size := f.count(text) + 1
		if size > room {
			continue
		}
		if used+size > room {
			groups, used = append(groups, group{from: i}), 0
		}
		g := &groups[len(groups)-1]
		g.text, g.to, used = append(g.text, text), i+1, used+size
	}
	return groups
}

// parts writes a prompt for each group.
func (p prompt) parts(groups []group, limit, output int) (plan, error) {
	if len(groups) == 0 {
		return plan{}, &SummaryError{Kind: FaultTooLarge, Detail: "no event fits the window"}
	}
	out := plan{limit: limit, output: output}
	if len(groups) == 1 {
		out.output = 0
	}
	end := 0
	for n, g := range groups {
		text := g.text
		if g.from > end {
			text = append([]string{p.omitted(end, g.from)}, text...)
		}
		if len(groups) > 1 {
			p.part = partNote(n+1, len(groups))
		}
		out.texts = append(out.texts, p.text(text))
		end = g.to
	}
	return out, nil
}

// Tags around the records of parts in the prompt that merges them.
const (
	partsOpen  = "<dewpoint_parts>"
	partsClose = "</dewpoint_parts>"
	partClose  = "</dewpoint_part>"
)

func partOpen(n, of int) string { return fmt.Sprintf("<dewpoint_part n=\"%d\" of=\"%d\">", n, of) }

func partNote(n, of int) string {
	return fmt.Sprintf("These are part %d of %d of the events. Your record is for this part alone and will be merged with those of the others: "+
		"use the previous record to understand the events, and do not repeat it. ", n, of)
}

// merge is the prompt that makes one record of those of the parts.
func (p prompt) merge(records []string) string {
	var b strings.Builder
	b.WriteString(p.history())
	b.WriteString(partsOpen + "\n")
	for i, r := range records {
		fmt.Fprintf(&b, "%s\n%s\n%s\n", partOpen(i+1, len(records)), record.Defuse(r), partClose)
	}
	b.WriteString(partsClose + "\n\nThe events were too many to be read at once. These are the records of their parts, oldest first: where they " +
		"differ, the later one is right. Merge them with the previous record, if there is one. " + p.ask)
	return b.String()
}
