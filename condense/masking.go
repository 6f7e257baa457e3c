package condense

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// masked is what stands for a masked observation, as OpenHands writes it.
const masked = "<MASKED>"

// ObservationMasking replaces the content of old tool results by a short text; their role and call id stay. It forgets
// nothing: every request's view is made anew. Results in the newest exchange, which no model has answered yet, are never
// masked, nor is what is already as short.
type ObservationMasking struct {
	// AttentionWindow is how many of the view's newest events are left as they are; as in OpenHands all events count, not
	// observations alone.
	AttentionWindow int
	// Stride is by how many events the boundary moves at once. Between two moves up to Stride-1 more events than the window
	// are left as they are, and the provider's cached prefix stays valid. 0: 1.
	Stride int
	// Batched masks only what the view had at its last condensation, so that the boundary moves only when there is another one.
	Batched bool
}

var _ Condenser = ObservationMasking{}

// Name implements Condenser.
func (ObservationMasking) Name() string { return "observation_masking" }

// Condense implements Condenser.
func (o ObservationMasking) Condense(in Input) Decision {
	items := maskable(in.View, o.Batched)
	boundary := len(items) - max(o.AttentionWindow, 0)
	boundary -= boundary % max(o.Stride, 1)
	boundary = min(boundary, newestExchange(items))
	e := edit{in: in}
	for i := range max(boundary, 0) {
		if in.View.Items[i].Kind == session.Observation {
			e.rewrite(i, e.marked(i, masked+e.event(i)))
		}
	}
	return e.decision()
}

// maskable gives the items of which the oldest may be masked: all of a view, or those that it had at its last condensation.
func maskable(v *session.View, batched bool) []session.Item {
	if batched {
		return v.Items[:min(shownAtFirst(v), len(v.Items))]
	}
	return v.Items
}

// newestExchange is the item with which the newest exchange begins: the last assistant message.
func newestExchange(items []session.Item) int {
	for i := len(items) - 1; i > 0; i-- {
		if k := items[i].Kind; k == session.Agent || k == session.Action {
			return i
		}
	}
	return 0
}

// edit changes the content of some of a view's items. The view it was made from stays as it is.
type edit struct {
	in    Input
	items []session.Item // nil: nothing changed yet
}

// marked is a text that stands for the content of item i, with the marks of what was attached to it.
func (e *edit) marked(i int, text string) string {
	item := e.in.View.Items[i]
	if item.Index < 0 || !e.in.View.History.Messages[item.Index].Attached {
		return text
	}
	return record.Attached(text, read(e.in.Codec, item.Raw))
}

// event names item i where the model can have it shown again by that.
func (e *edit) event(i int) string {
	if item := e.in.View.Items[i]; e.in.Thread.Recall && item.Index >= 0 {
		return fmt.Sprintf(" (event %d)", e.in.View.History.Pos(item.Index))
	}
	return ""
}

// rewrite gives item i another text, unless that makes it no shorter.
func (e *edit) rewrite(i int, text string) {
	item := e.in.View.Items[i]
	raw, err := e.in.Codec.Rewrite(item.Raw, text)
	if err != nil || len(raw) >= len(item.Raw) {
		return
	}
	if e.items == nil {
		e.items = append([]session.Item(nil), e.in.View.Items...)
	}
	e.items[i].Raw, e.items[i].Trim = raw, nil
}

func (e *edit) decision() Decision {
	if e.items == nil {
		return Decision{}
	}
	v := session.View{History: e.in.View.History, Applied: e.in.View.Applied, Items: e.items}
	Render(e.in.Codec, &v)
	return Decision{View: &v}
}
