package condense

import (
	"fmt"
	"strings"
	"unicode/utf8"

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

// Tags around data in a prompt. The data is defused, so it cannot close them.
const (
	previousOpen  = "<dewpoint_previous>"
	previousClose = "</dewpoint_previous>"
	eventsOpen    = "<dewpoint_events>"
	eventsClose   = "</dewpoint_events>"
	eventClose    = "</dewpoint_event>"
	keptOpen      = "<dewpoint_kept note=\"kept, for understanding only\">"
	keptClose     = "</dewpoint_kept>"
)

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

	over func() bool // it is not wanted any more: events that are not written yet stay out; nil: never
}

// fit writes the prompt within a budget of tokens. Events are cut to at most limit runes, then to half of that and so
// on; when even the shortest do not fit, those in the middle are left out, the old before the new.
func (p prompt) fit(limit, budget int, count func(string) int) (plan, error) {
	for {
		text := p.text(p.render(limit))
		if count(text) <= budget {
			return plan{texts: []string{text}, limit: limit}, nil
		}
		if limit <= minEventLength {
			return p.drop(budget, count)
		}
		limit = max(limit/2, minEventLength)
	}
}

// drop leaves out events in the middle. A quarter of the room is for the oldest ones, which tell what it all is about.
func (p prompt) drop(budget int, count func(string) int) (plan, error) {
	rendered := p.render(minEventLength)
	sizes := make([]int, len(rendered))
	for i, r := range rendered {
		sizes[i] = count(r)
	}
	room := budget - count(p.text([]string{p.omitted(0, len(rendered))}))
	head, tail := 0, len(rendered)
	for used := 0; head < tail && used+sizes[head] <= room/4; head++ {
		used, room = used+sizes[head], room-sizes[head]
	}
	for ; tail > head && sizes[tail-1] <= room; tail-- {
		room -= sizes[tail-1]
	}
	if head == 0 && tail == len(rendered) {
		return plan{}, &SummaryError{Kind: FaultTooLarge, Detail: fmt.Sprintf("window leaves %d tokens", budget)}
	}
	kept := append([]string(nil), rendered[:head]...)
	if tail > head {
		kept = append(kept, p.omitted(head, tail))
	}
	return plan{texts: []string{p.text(append(kept, rendered[tail:]...))}, limit: minEventLength}, nil
}

func (p prompt) omitted(from, to int) string {
	if from == to {
		return ""
	}
	return fmt.Sprintf("[%d events left out for lack of room]\n", to-from)
}

func (p prompt) text(events []string) string {
	var b strings.Builder
	b.WriteString(p.history())
	b.WriteString(eventsOpen + "\n")
	for _, e := range events {
		b.WriteString(e)
	}
	b.WriteString(eventsClose + "\n\n" + p.part + p.ask)
	return b.String()
}

// history shows the previous record in full, and what is kept.
func (p prompt) history() string {
	text := ""
	if p.previous != "" {
		text = previousOpen + "\n" + record.Defuse(p.previous) + "\n" + previousClose + "\n\n"
	}
	if p.kept != "" {
		text += keptOpen + "\n" + p.kept + keptClose + "\n\n"
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
	var stay []excerpt.Message
	for _, m := range s.history {
		if m.Shown && m.Kind != session.System {
			stay = append(stay, m)
		}
	}
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
		id := ""
		if p.ids {
			id = fmt.Sprintf(" id=\"%d\"", e.id)
		}
		out[i] = fmt.Sprintf("<dewpoint_event%s kind=\"%s\">\n%s%s\n", id, e.kind, e.text(limit), eventClose)
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
	head, tail := 0, len(text)
	for i := range limit {
		if i%2 == 0 {
			_, size := utf8.DecodeRuneInString(text[head:])
			head += size
		} else {
			_, size := utf8.DecodeLastRuneInString(text[:tail])
			tail -= size
		}
	}
	return fmt.Sprintf("%s\n[%d characters cut]\n%s", text[:head], missing, text[tail:])
}
