package engine

import (
	"encoding/json"
	"fmt"
	"strings"

	quotes "github.com/dewpoint-proxy/dewpoint/condense/excerpt"
	"github.com/dewpoint-proxy/dewpoint/condense/recall"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// How many tokens an answer of the recall tool has at most: with lines, and with whole events.
const (
	lineRoom  = 800
	eventRoom = 4000
)

// recalls reports whether what stands for hidden messages names them by their positions. It is the same for all requests of a thread, or
// its prefix would not be.
func (t *Turn) recalls() bool {
	_, can := t.in.Dialect.(dialect.Hider)
	return can && t.in.Tenant.Hidden.Recall
}

// lookUp is the recall tool: it answers from the history that the client sends.
func (t *Turn) lookUp(arguments string) string {
	var asked struct {
		Query       string
		Event, Last int
	}
	if err := json.Unmarshal([]byte(arguments), &asked); err != nil {
		return "The arguments are not understood: give a query, or the number of an event."
	}
	switch n := t.history.Len(); {
	case asked.Event > 0:
		last := min(max(asked.Event, asked.Last), n)
		if asked.Event > n {
			return fmt.Sprintf("There are events 1 to %d.", n)
		}
		var events []recall.Event
		for p := asked.Event; p <= last; p++ {
			events = append(events, t.event(p))
		}
		return recall.Whole(events, recall.Room{Tokens: eventRoom, Count: t.counter.Text})
	case strings.TrimSpace(asked.Query) == "":
		return "Give a query, or the number of an event."
	}
	hidden := t.outOfView()
	if len(hidden) == 0 {
		return "Nothing of this conversation is hidden: look above."
	}
	var events []recall.Event
	for _, p := range hidden {
		events = append(events, t.event(p))
	}
	return recall.Lines(events, asked.Query, recall.Room{Tokens: lineRoom, Count: t.counter.Text})
}

// outOfView are the positions of messages that the view does not show as they are.
func (t *Turn) outOfView() (hidden []int) {
	shown := make([]bool, t.history.Len()+1)
	for i := range t.shown.view.Items {
		item := &t.shown.view.Items[i]
		if item.Index >= 0 && (item.Strip || sameBytes(item.Raw, t.in.Split.Messages[item.Index].Raw)) {
			shown[t.history.Pos(item.Index)] = true
		}
	}
	for p := 1; p <= t.history.Len(); p++ {
		if !shown[p] {
			hidden = append(hidden, p)
		}
	}
	return hidden
}

// event is the message at a position as it is recalled: its text, and what its calls were given.
func (t *Turn) event(p int) recall.Event {
	m := t.history.Message(p)
	e := recall.Event{ID: p, What: m.Kind.String()}
	c, err := t.in.Dialect.Read(m.Raw)
	if err != nil {
		return e
	}
	switch m.Kind {
	case session.Observation:
		e.What = "tool result"
	case session.Action, session.Agent:
		e.What = "assistant"
	}
	var text strings.Builder
	text.WriteString(c.Text)
	for _, call := range c.Calls {
		text.WriteString("\ncalled " + call.Name)
		quotes.Values(call.Arguments, func(value string) { text.WriteString("\n" + value) })
	}
	e.Text = text.String()
	return e
}
