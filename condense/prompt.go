package condense

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/dewpoint-proxy/dewpoint/condense/excerpt"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Bounds of a prompt, in runes of one event's text.
const (
	DefaultEventLength = 10000
	minEventLength     = 200
)

// messageOverhead is what a message costs besides its text, in tokens.
const messageOverhead = 4

// tagged is data in a prompt. The data is defused, so it cannot close the tag.
func tagged(name, attributes, data string) string {
	return "<dewpoint_" + name + attributes + ">\n" + data + "</dewpoint_" + name + ">"
}

// event is a message to be summarised.
type event struct {
	id      int // its position
	kind    session.Kind
	content session.Content
}

// prompt is the part of a summariser's prompt that changes.
type prompt struct {
	previous string // the previous record in full, empty if there is none
	kept     string // messages that stay, which tell what the others are about
	events   []event
	ask      string // what to do, at the end
	part     string // which part of the events these are, empty: all of them
	ids      bool   // events are shown with their ids, which the answer names

	budget int              // tokens that it may have
	output int              // tokens of a record
	count  func(string) int // of tokens
	over   func() bool      // it is not wanted any more: events that are not written yet stay out; nil: never
}

// Bounds of a summary made in parts.
const (
	maxCalls   = 8    // of one job: parts, what merges them, and a second try
	partLength = 2000 // runes to which events are cut before they are read in parts instead
	minPart    = 200  // tokens that the record of a part may have at least
	atOnce     = 4    // parts that are read at the same time
)

// plan is the prompts that a span is read by: one for all of it, or one for each part.
type plan struct {
	texts  []string
	limit  int // runes to which the text of an event was cut
	output int // tokens that the record of a part may have
}

// plan fits the events into one prompt, cut to limit runes and then to fewer. Below partLength they are rather read in parts, each in a
// prompt of its own, whose records are merged by a last call. When that would take too many calls, events are cut shorter still; when even
// the shortest do not fit, those in the middle are left out, the old before the new.
func (p prompt) plan(limit, calls int) (plan, error) {
	for {
		if text := p.text(p.render(limit)); p.count(text) <= p.budget {
			return plan{texts: []string{text}, limit: limit}, nil
		}
		output := p.partOutput(calls)
		switch {
		case limit > partLength:
			limit = max(limit/2, partLength)
		case output >= minPart:
			return p.split(limit, calls, output)
		case limit <= minEventLength:
			return p.drop()
		default:
			limit = max(limit/2, minEventLength)
		}
	}
}

// drop leaves out events in the middle. A quarter of the room is for the oldest ones, which tell what it all is about.
func (p prompt) drop() (plan, error) {
	rendered := p.render(minEventLength)
	room := p.budget - p.count(p.text([]string{p.omitted(0, len(rendered))}))
	head, tail := 0, len(rendered)
	size := func(i int) int { return p.count(rendered[i]) }
	for used := 0; head < tail && used+size(head) <= room/4; head++ {
		used, room = used+size(head), room-size(head)
	}
	for ; tail > head && size(tail-1) <= room; tail-- {
		room -= size(tail - 1)
	}
	if head == 0 && tail == len(rendered) {
		return plan{}, &SummaryError{Kind: FaultTooLarge, Detail: fmt.Sprintf("window leaves %d tokens", p.budget)}
	}
	text := p.text(slices.Concat(rendered[:head], []string{p.omitted(head, tail)}, rendered[tail:]))
	return plan{texts: []string{text}, limit: minEventLength}, nil
}

// partOutput is how long the record of a part may be, so that all of them fit the last call's prompt; 0 if there are not
// calls enough for two parts and that one.
func (p prompt) partOutput(calls int) int {
	if calls < 3 {
		return 0
	}
	room := p.budget - p.count(p.merge(nil))
	return min(p.output, room/(calls-1)-2*p.count("<dewpoint_part"+ofParts(1, 1)+">"))
}

// split reads the events in as many parts as it takes, at most all calls but one.
func (p prompt) split(limit, calls, output int) (plan, error) {
	groups := p.groups(limit)
	for len(groups) >= calls && limit > minEventLength {
		limit = max(limit/2, minEventLength)
		groups = p.groups(limit)
	}
	if len(groups) >= calls {
		groups = append(groups[:1:1], groups[len(groups)-calls+2:]...)
	}
	if len(groups) == 0 {
		return plan{}, &SummaryError{Kind: FaultTooLarge, Detail: "no event fits the window"}
	}
	out, end := plan{limit: limit, output: output}, 0
	for n, g := range groups {
		text := append([]string{p.omitted(end, g.from)}, g.text...)
		if len(groups) > 1 {
			p.part = partNote(n+1, len(groups))
		}
		out.texts = append(out.texts, p.text(text))
		end = g.to
	}
	return out, nil
}

// group is consecutive events that are read together.
type group struct {
	from, to int
	text     []string
}

// groups packs the events, as many as fit a prompt. What does not even fit alone is left out.
func (p prompt) groups(limit int) []group {
	p.part = partNote(maxCalls, maxCalls)
	room := p.budget - p.count(p.text([]string{p.omitted(0, len(p.events))}))
	var groups []group
	used := room + 1
	for i, text := range p.render(limit) {
		size := p.count(text) + 1
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

// ofParts tells which part of the events something is.
func ofParts(n, of int) string { return fmt.Sprintf(" n=\"%d\" of=\"%d\"", n, of) }

func partNote(n, of int) string {
	return fmt.Sprintf("These are part %d of %d of the events. Your record is for this part alone and will be merged with those of the others: "+
		"use the previous record to understand the events, and do not repeat it. ", n, of)
}

// merge is the prompt that makes one record of those of the parts.
func (p prompt) merge(records []string) string {
	parts := ""
	for i, r := range records {
		parts += tagged("part", ofParts(i+1, len(records)), record.Defuse(r)+"\n") + "\n"
	}
	return p.history() + tagged("parts", "", parts) + "\n\nThe events were too many to be read at once. These are the records of their " +
		"parts, oldest first: where they differ, the later one is right. Merge them with the previous record, if there is one. " + p.ask
}

// readParts asks for the records of all parts and gives the prompt that merges them. The first failure ends it. A panic in
// one of them becomes the caller's, who can catch it: in a goroutine of its own it would end the process.
func (j *llmJob) readParts(ctx context.Context, p prompt, pl plan) (string, error) {
	records := make([]string, len(pl.texts))
	parts, ctx := errgroup.WithContext(ctx)
	parts.SetLimit(atOnce)
	for i, text := range pl.texts {
		parts.Go(func() (err error) {
			defer func() {
				if v := recover(); v != nil {
					err = panicked(fmt.Sprintf("%v\n%s", v, debug.Stack()))
				}
			}()
			records[i], err = j.readPart(ctx, text, pl.output)
			return err
		})
	}
	err := parts.Wait()
	if p, ok := errors.AsType[panicked](err); ok {
		panic(string(p))
	}
	return p.merge(records), err
}

// panicked is what a part panicked with.
type panicked string

func (p panicked) Error() string { return string(p) }

// readPart asks for the record of one part.
func (j *llmJob) readPart(ctx context.Context, text string, output int) (record string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	r := j.request(text)
	r.MaxOutput = output
	reply, err := j.call(ctx, r)
	if err == nil {
		record, err = j.form.record(reply)
	}
	if n := j.in.Count(record); n > output {
		err = inflated(n, output)
	}
	return record, err
}

func (p prompt) omitted(from, to int) string {
	if from == to {
		return ""
	}
	return fmt.Sprintf("[%d events left out for lack of room]\n", to-from)
}

func (p prompt) text(events []string) string {
	return p.history() + tagged("events", "", strings.Join(events, "")) + "\n\n" + p.part + p.ask
}

// history shows the previous record in full, and what is kept.
func (p prompt) history() string {
	text := ""
	if p.previous != "" {
		text = tagged("previous", "", record.Defuse(p.previous)+"\n") + "\n\n"
	}
	if p.kept != "" {
		text += tagged("kept", ` note="kept, for understanding only"`, p.kept) + "\n\n"
	}
	return text
}

// Bounds of the messages that are shown although they stay.
const (
	keptHead   = 2    // from the beginning
	keptNewest = 4    // from the end
	keptLength = 1000 // runes of each
	keptShare  = 8    // of the prompt, one in that many
)

// kept shows the beginning and the newest exchange of what stays, within a number of tokens: who knows neither the goal nor the next
// step cannot tell what matters.
func (s *span) kept(budget int, count func(string) int) string {
	stay := slices.DeleteFunc(slices.Clone(s.history), func(m excerpt.Message) bool { return !m.Shown || m.Kind == session.System })
	if n := len(stay) - keptNewest; n > keptHead {
		stay = append(stay[:keptHead:keptHead], stay[n:]...)
	}
	for _, limit := range [...]int{keptLength, minEventLength} {
		var b strings.Builder
		for _, m := range stay {
			fmt.Fprintf(&b, "%s:\n%s\n", m.Kind, event{content: m.Content}.text(limit))
		}
		if text := b.String(); count(text) <= budget {
			return text
		}
	}
	return ""
}

func (p prompt) render(limit int) []string {
	out := make([]string, len(p.events))
	for i, e := range p.events {
		if p.over != nil && p.over() {
			break
		}
		attributes := fmt.Sprintf(" kind=\"%s\"", e.kind)
		if p.ids {
			attributes = fmt.Sprintf(" id=\"%d\"", e.id) + attributes
		}
		out[i] = tagged("event", attributes, e.text(limit)) + "\n"
	}
	return out
}

// text is an event's text, calls and results, each cut so that all together have about limit runes.
func (e event) text(limit int) string {
	limit = max(limit/max(len(e.content.Calls)+1, 1), minEventLength)
	var b strings.Builder
	if e.content.Result != "" {
		answered := strings.TrimSpace(e.content.Result + " " + e.content.Name)
		b.WriteString("result of call " + shorten(answered, minEventLength) + "\n")
	}
	if e.content.Text != "" {
		b.WriteString(shorten(e.content.Text, limit) + "\n")
	}
	if marks := record.Attachments(e.content); marks != "" {
		b.WriteString(marks + "\n")
	}
	for _, c := range e.content.Calls {
		fmt.Fprintf(&b, "call %s: %s(%s)\n", shorten(c.ID, minEventLength), shorten(c.Name, minEventLength), shorten(c.Arguments, limit))
	}
	return record.Defuse(b.String())
}

// shorten leaves the first and last runes of text, limit of them in all, and says how many are missing.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	missing := utf8.RuneCountInString(text) - limit
	if missing <= 0 {
		return text
	}
	head, tail := ends(text, limit)
	return fmt.Sprintf("%s\n[%d characters cut]\n%s", text[:head], missing, text[tail:])
}

// ends is where the first runes of a longer text end and its last ones begin, limit of them in all.
func ends(text string, limit int) (head, tail int) {
	tail = len(text)
	for i := range limit {
		if i%2 == 0 {
			_, size := utf8.DecodeRuneInString(text[head:])
			head += size
		} else {
			_, size := utf8.DecodeLastRuneInString(text[:tail])
			tail -= size
		}
	}
	return head, tail
}
