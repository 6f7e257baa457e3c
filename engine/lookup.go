package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/recall"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Limits on an answer of the recall tool.
const (
	lineTokens  = 800  // for quoted lines
	eventTokens = 4000 // for whole events
	maxEvents   = 200  // in a range
)

// lookUp answers a call of the recall tool from the history that the client sent, and from the earlier threads of the conversation in
// the log.
func (f *Form) lookUp(ctx context.Context, arguments string) string {
	if len(arguments) > dialect.MaxArguments {
		return fmt.Sprintf("The arguments are longer than %d bytes: give a short query, or the id of an event.", dialect.MaxArguments)
	}
	var asked struct {
		Query       string
		Event, Last json.RawMessage
	}
	if err := json.Unmarshal([]byte(arguments), &asked); err != nil {
		return "The arguments are not understood: give a query, or the id of an event."
	}
	span, named := recall.ParseSpan(string(asked.Event) + " " + string(asked.Last))
	if !named && strings.TrimSpace(asked.Query) == "" {
		return "Give a query, or the id of an event."
	}
	f = f.resolved(ctx)
	if named && span.Back == 0 {
		return f.quoteEvents(f.turn.events(span), "")
	}
	read, cancel := context.WithTimeout(ctx, f.turn.engine.o.Limits.Store)
	earlier := f.turn.registry.Earlier(read, f.at())
	cancel()
	if named {
		return f.quoteEvents(f.turn.earlierEvents(earlier, span), unsearched(earlier))
	}
	answer := "The history cannot be searched now."
	_ = f.turn.engine.summaries.Compute(ctx, func() { answer = f.quoteLines(earlier, asked.Query) }) // it fails only if the client has left
	return answer
}

// quoteEvents returns whole events. If there are none, it says so and adds the note.
func (f *Form) quoteEvents(events []recall.Event, note string) string {
	if len(events) == 0 {
		return strings.TrimSpace(fmt.Sprintf("That event is not there. There are events 1 to %d. %s", f.turn.history.Len(), note))
	}
	return recall.Whole(events, recall.Room{Tokens: eventTokens, Count: f.turn.counter.Text})
}

// quoteLines returns the lines that match a query best, from everything that the view does not show.
func (f *Form) quoteLines(earlier session.Earlier, query string) string {
	var events []recall.Event
	for back := len(earlier.Threads); back > 0; back-- {
		events = append(events, f.turn.earlierEvents(earlier, recall.Span{First: 1, Last: math.MaxInt, Back: back})...)
	}
	events = append(events, f.outOfView()...)
	note := unsearched(earlier)
	if len(events) == 0 && note == "" {
		return "Nothing of this conversation is hidden: look above."
	}
	room := recall.Room{Tokens: lineTokens - f.turn.counter.Text(note), Count: f.turn.counter.Text}
	return strings.TrimSpace(recall.Lines(events, query, room) + "\n" + note)
}

// unsearched returns a note on the part of a conversation that could not be searched; empty if there is none.
func unsearched(e session.Earlier) string {
	switch {
	case !e.Readable:
		return "(What was said before the client shortened this conversation is not kept, or cannot be read: it was not searched.)"
	case !e.Whole:
		return "(There is more from before the client shortened this conversation than could be searched.)"
	}
	return ""
}

// outOfView returns the messages that the view hides or shows only in part.
func (f *Form) outOfView() (hidden []recall.Event) {
	shown := make([]bool, f.turn.history.Len()+1)
	for i := range f.shown.view.Items {
		item := &f.shown.view.Items[i]
		if item.Index >= 0 && (item.Strip || f.shown.view.Verbatim(item)) {
			shown[f.turn.history.Pos(item.Index)] = true
		}
	}
	for p := 1; p <= f.turn.history.Len(); p++ {
		if !shown[p] {
			hidden = append(hidden, f.turn.event(p))
		}
	}
	return hidden
}

// events returns a span of the history.
func (t *Turn) events(s recall.Span) (events []recall.Event) {
	for p := s.First; p <= min(s.Last, s.First+maxEvents, t.history.Len()); p++ {
		events = append(events, t.event(p))
	}
	return events
}

// event returns the message at position p.
func (t *Turn) event(p int) recall.Event {
	m := t.history.Message(p)
	c, _ := t.in.Dialect.Read(m.Raw) // an unreadable message is empty
	return recall.NewEvent(recall.EventID(p, 0), m.Kind, c)
}

// earlierEvents returns a span of an earlier thread.
func (t *Turn) earlierEvents(e session.Earlier, s recall.Span) (events []recall.Event) {
	if s.Back > len(e.Threads) {
		return nil
	}
	thread := &e.Threads[s.Back-1]
	d := t.in.Settings.dialect(thread.Dialect)
	if d == nil {
		return nil
	}
	for i := range thread.Events {
		m := &thread.Events[i]
		if c, err := d.Read(m.Payload); err == nil && s.First <= m.Pos && m.Pos <= s.Last {
			events = append(events, recall.NewEvent(recall.EventID(m.Pos, s.Back), m.Kind, c))
		}
	}
	return events
}
