package condense

import (
	"fmt"
	"slices"

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

func (ObservationMasking) Name() string { return "observation_masking" }

func (o ObservationMasking) Condense(in Input) Decision {
	items := maskable(in.View, o.Batched)
	boundary := len(items) - max(o.AttentionWindow, 0)
	boundary -= boundary % max(o.Stride, 1)
	boundary = min(boundary, newestExchange(items))
	texts := map[int]string{}
	for i := range max(boundary, 0) {
		if items[i].Kind == session.Observation {
			texts[i] = masked
		}
	}
	return rewritten(in, texts)
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

// rewritten is the decision to show texts in the place of the content of some items, where that makes them shorter: each with the marks of what
// was attached, and named where the model can have it shown again by that.
func rewritten(in Input, texts map[int]string) Decision {
	v := session.View{History: in.View.History, Applied: in.View.Applied, Items: slices.Clone(in.View.Items)}
	changed := false
	for i, text := range texts {
		item := &v.Items[i]
		if item.Index >= 0 && in.Thread.Recall {
			text += fmt.Sprintf(" (event %d)", v.History.Pos(item.Index))
		}
		if item.Index >= 0 && v.History.Messages[item.Index].Attached {
			text = record.Attached(text, read(in.Codec, item.Raw))
		}
		if raw, err := in.Codec.Rewrite(item.Raw, text); err == nil && len(raw) < len(item.Raw) {
			item.Raw, item.Trim, changed = raw, nil, true
		}
	}
	if !changed {
		return Decision{}
	}
	Render(in.Codec, &v)
	return Decision{View: &v}
}
