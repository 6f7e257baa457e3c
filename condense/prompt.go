package condense

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/condense/excerpt"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Default and minimum length of one event in a prompt, in runes.
const (
	DefaultEventLength = 10000
	minEventLength     = 200
)

// messageOverhead is the size of a message besides its text, in tokens.
const messageOverhead = 4

// tagged wraps data for a prompt. The data must be defused, so that it cannot close the tag.
func tagged(name, attributes, data string) string {
	return "<dewpoint_" + name + attributes + ">\n" + data + "</dewpoint_" + name + ">"
}

// event is a message to summarise.
type event struct {
	id      int // position in the history
	kind    session.Kind
	content session.Content
}

// prompt is the variable part of a summariser's prompt.
type prompt struct {
	previous string // the previous record in full, empty if there is none
	kept     string // messages that stay, which show what the events are about
	events   []event
	ask      string // the final instruction
	ids      bool   // show the ids of events, for the answer to name

	budget    int              // maximum tokens of the prompt
	output    int              // maximum tokens of a record, which the next prompt has as its previous one
	count     func(string) int // counts tokens
	cancelled func() bool      // the prompt is no longer needed, and further events are not rendered; nil: never
}

// Limits of a summary that takes several calls.
const (
	maxCalls   = 8    // calls of one job, a second attempt included
	stepLength = 2000 // runes to which events are cut before they are read in several steps
)

// plan holds the steps in which a span is read. Each step continues the record of the one before it.
type plan struct {
	prompt prompt
	steps  []step
	limit  int // runes to which each event was cut
}

// step holds the events that one call reads.
type step struct {
	from, to int
	text     []string
}

// plan fits the events into one prompt, cut to limit runes or less. Rather than cut them below stepLength it reads them in
// several steps. If that takes too many calls, events are cut further. If even the shortest do not fit, those in the middle
// are left out, older ones first.
func (p prompt) plan(limit, calls int) (plan, error) {
	for {
		steps := p.steps(limit)
		n := len(steps)
		switch {
		case n == 1, limit <= stepLength && 0 < n && n <= calls:
			return plan{p, steps, limit}, nil
		case limit > stepLength:
			limit = max(limit/2, stepLength)
		case limit > minEventLength:
			limit = max(limit/2, minEventLength)
		case calls == 1 || n == 0:
			return p.drop()
		default:
			rest := steps[n-calls+1:]
			rest[0].text = slices.Insert(rest[0].text, 0, p.omitted(steps[0].to, rest[0].from))
			return plan{p, append(steps[:1], rest...), limit}, nil
		}
	}
}

// drop leaves out events in the middle. A quarter of the room is for the oldest events, which show the subject.
func (p prompt) drop() (plan, error) {
	rendered := p.render(minEventLength)
	room := p.budget - p.count(p.text([]string{p.omitted(0, len(rendered))}))
	head, tail := 0, len(rendered)
	used := 0
	size := func(i int) int { return p.count(rendered[i]) }
	for head < tail && used+size(head) <= room/4 {
		used += size(head)
		room -= size(head)
		head++
	}
	for tail > head && size(tail-1) <= room {
		tail--
		room -= size(tail)
	}
	if head == 0 && tail == len(rendered) {
		return plan{}, FaultTooLarge.errorf("window leaves %d tokens", p.budget)
	}
	text := slices.Concat(rendered[:head], []string{p.omitted(head, tail)}, rendered[tail:])
	return plan{p, []step{{0, len(rendered), text}}, minEventLength}, nil
}

// steps packs the events into as few prompts as possible. An event that does not fit a prompt of its own is left out.
func (p prompt) steps(limit int) (steps []step) {
	rendered := p.render(limit)
	if p.count(p.text(rendered)) <= p.budget {
		return []step{{0, len(rendered), rendered}}
	}
	room := p.budget - p.output - p.count(p.text([]string{p.omitted(0, len(rendered))}))
	used := room + 1 // so that the first event begins a step
	end := 0         // of the events packed
	for i, text := range rendered {
		size := p.count(text) + 1
		if size > room {
			continue
		}
		if used+size > room {
			steps = append(steps, step{from: i})
			used = 0
		}
		s := &steps[len(steps)-1]
		s.text = append(s.text, p.omitted(end, i), text)
		s.to, end = i+1, i+1
		used += size
	}
	return steps
}

func (p prompt) omitted(from, to int) string {
	if from == to {
		return ""
	}
	return fmt.Sprintf("[%d events left out for lack of room]\n", to-from)
}

func (p prompt) text(events []string) string {
	return p.history() + tagged("events", "", strings.Join(events, "")) + "\n\n" + p.ask
}

// history returns the previous record in full, and the messages that stay.
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

// Limits of the messages that are shown although they stay.
const (
	keptHead   = 2    // from the beginning
	keptNewest = 4    // from the end
	keptLength = 1000 // runes of each
	keptShare  = 8    // of the prompt, one in that many
)

// kept returns the beginning and the newest exchange of the messages that stay, within a number of tokens: without the goal
// and the next step a model cannot tell what matters.
func (s *span) kept(budget int, count func(string) int) string {
	stay := slices.DeleteFunc(slices.Clone(s.history), func(m excerpt.Message) bool {
		return !m.Shown || m.Kind == session.System
	})
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
		if p.cancelled != nil && p.cancelled() {
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

// text returns an event's text, calls and results, each cut so that all together have about limit runes.
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
		fmt.Fprintf(&b, "call %s: %s(%s)\n",
			shorten(c.ID, minEventLength), shorten(c.Name, minEventLength), shorten(c.Arguments, limit))
	}
	return record.Defuse(b.String())
}

// shorten cuts the middle out of a text, leaves limit runes of it, and says how many are missing.
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

// ends returns where the first runes of a text end and its last ones begin, limit of them in all. The text must have more.
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
