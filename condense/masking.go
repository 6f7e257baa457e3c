package condense

import (
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// masked replaces the content of a masked observation, as in OpenHands.
const masked = "<MASKED>"

// ObservationMasking replaces the content of old tool results by a short text; role and call id stay. It hides no messages:
// the view is recomputed for every request. Results in the newest exchange, which no model has answered yet, are never
// masked, nor are results without attachments whose text would not become shorter.
type ObservationMasking struct {
	// AttentionWindow is the number of newest events that are not changed. As in OpenHands, not only observations count.
	AttentionWindow int
	// Stride is the number of events by which the boundary moves at once. Between two moves up to Stride-1 more events than
	// the window are not changed, and the provider's cached prefix stays valid. 0 means 1.
	Stride int
	// Batched masks only items that the view had after its last condensation: the boundary moves only together with one.
	Batched bool
}

func (ObservationMasking) Name() string { return "observation_masking" }

func (o ObservationMasking) Condense(in Input) Decision {
	items := maskable(in.View, o.Batched)
	boundary := len(items) - max(o.AttentionWindow, 0)
	boundary -= boundary % max(o.Stride, 1)
	boundary = min(boundary, newestExchange(items))
	texts, stays := map[int]string{}, in.stays()
	for i := range max(boundary, 0) {
		if items[i].Kind == session.Observation && !stays(&items[i]) {
			texts[i] = masked
		}
	}
	return replaceContent(in, texts)
}

// maskable returns the items that may be masked: all items of a view, or those that it had after its last condensation.
func maskable(v *session.View, batched bool) []session.Item {
	if batched {
		return v.Items[:min(shownAtFirst(v), len(v.Items))]
	}
	return v.Items
}

// lasts reports whether an item is a message that has to stay whole.
func lasts(v *session.View, item *session.Item) bool {
	return item.Index >= 0 && v.History.Messages[item.Index].Lasts
}

// newestExchange returns the index of the last assistant message, or 0 if there is none.
func newestExchange(items []session.Item) int {
	for i := len(items) - 1; i > 0; i-- {
		if items[i].Kind.ByModel() {
			return i
		}
	}
	return 0
}

// replaceContent returns the decision to replace the content of items, given as texts by index, where that leaves out attachments or makes
// the text shorter. The client's spacing and cache marks do not count, because they may change. Marks of attachments are added, and
// the position if the model can recall it.
func replaceContent(in Input, texts map[int]string) Decision {
	v := session.View{History: in.View.History, Applied: in.View.Applied, Items: slices.Clone(in.View.Items)}
	changed := false
	for i, text := range texts {
		item := &v.Items[i]
		if item.Index >= 0 && in.Thread.Recall {
			text += fmt.Sprintf(" (event %d)", v.History.Pos(item.Index))
		}
		raw, err := in.Codec.Rewrite(item.Raw, text)
		attached := item.Index < 0 || v.History.Messages[item.Index].Attached
		shorter := !attached && len(item.Raw) > 4*len(raw) // whatever the spacing and the marks: it need not be read
		if err == nil && !shorter {
			content := read(in.Codec, item.Raw)
			raw, err = in.Codec.Rewrite(item.Raw, record.Attached(text, content))
			own, _ := in.Codec.Rewrite(raw, content.Text) // in the same spacing
			shorter = len(raw) < len(own) || len(content.Images)+len(content.Files) > 0
		}
		if err == nil && shorter {
			item.Raw, item.Trim = raw, nil
			changed = true
		}
	}
	if !changed {
		return Decision{}
	}
	Render(in.Codec, &v)
	return Decision{View: &v}
}
