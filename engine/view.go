package engine

import (
	"cmp"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// projection is a view, and how it came about.
type projection struct {
	view    session.View
	applied []session.Condensation
	shaped  bool // a condenser made the view another one than the log gives
	seen    int  // condensations that the thread had

	attached bool // it shows images or files, whose tokens are an estimate
	unbound  bool // it shows reasoning that is bound to another history, and upstream is to drop that
}

// show makes a projection the one that is forwarded. Nothing else sets it.
func (t *Turn) show(p projection) {
	p.attached = slices.ContainsFunc(p.view.Items, func(i session.Item) bool {
		return i.Index >= 0 && t.in.Split.Messages[i.Index].Attached
	})
	t.shown = p
}

// project makes the view of the history under condensations.
func (t *Turn) project(applied []session.Condensation) projection {
	p := projection{view: session.Project(t.history, applied), applied: applied, seen: len(t.place.Thread.Condensations)}
	condense.Render(t.in.Dialect, &p.view)
	stripped := 0
	for i := range p.view.Applied {
		stripped = max(stripped, p.view.Applied[i].Stripped)
	}
	for i := range p.view.Items {
		item := &p.view.Items[i]
		t.restore(item)
		t.add(item)
		if item.Strip = item.Strip || item.Parts != nil && t.history.Pos(item.Index) <= stripped; item.Strip {
			t.strip(item)
		}
	}
	if raw, known := t.engine.memory.raw.Get(t.place.Thread.ID); known && len(p.view.Applied) > 0 {
		t.bare(p.view.Items, raw+1)
	}
	if lost, known := t.engine.memory.lost.Get(t.place.Thread.ID); known {
		t.bare(p.view.Items, lost+1)
	}
	t.keepNewest(&p)
	t.standFor(p.view.Items)
	return p
}

// reshaped is the view that a condenser made. What the model answered before a position was bound to another one, so no message there
// shows its sealed reasoning any more.
func (t *Turn) reshaped(v session.View, end int) projection {
	t.bare(v.Items, end)
	p := projection{view: v, applied: t.shown.applied, shaped: true, seen: t.shown.seen}
	t.keepNewest(&p)
	t.standFor(p.view.Items)
	return p
}

// keepNewest shows the newest answer of an open tool loop with its sealed reasoning, which upstream demands there, where it can be asked to
// drop what is bound to another history.
func (t *Turn) keepNewest(p *projection) {
	if _, can := t.in.Dialect.(dialect.Unbinder); !can || (condense.Input{View: &p.view, NeedsReasoning: t.in.Split.NeedsReasoning}).Loop() == 0 {
		return
	}
	for i := len(p.view.Items) - 1; i >= 0; i-- {
		item := &p.view.Items[i]
		if item.Kind != session.Action && item.Kind != session.Agent {
			continue
		}
		if item.Index >= 0 && item.Strip {
			item.Raw, item.Strip, p.unbound = t.in.Split.Messages[item.Index].Raw, false, true
			t.restore(item)
		}
		return
	}
}

// Unbinding gives the header that what is forwarded needs; empty: none.
func (t *Turn) Unbinding() (name, value string) {
	if d, can := t.in.Dialect.(dialect.Unbinder); can && t.shown.unbound && t.changed() {
		return d.Unbinding()
	}
	return "", ""
}

// bare leaves out the sealed reasoning of all items that stand before a position.
func (t *Turn) bare(items []session.Item, end int) {
	for i := range items {
		item := &items[i]
		if item.Index >= 0 && !item.Strip && (item.Parts != nil || t.in.Split.Messages[item.Index].Sealed) && t.history.Pos(item.Index) < end {
			item.Strip = true
			t.strip(item)
		}
	}
}

// add puts an added text at an item's end. What takes none stays as it is.
func (t *Turn) add(item *session.Item) {
	if item.Added == "" || item.Index < 0 {
		return
	}
	if raw, err := t.in.Dialect.Merge(item.Raw, t.in.Dialect.Note(item.Added)); err == nil {
		item.Raw = raw
		return
	}
	c, err := t.in.Dialect.Read(item.Raw) // a result of the Responses API takes no other message's content
	if err != nil || len(c.Images)+len(c.Files) > 0 {
		return
	}
	if raw, err := t.in.Dialect.Rewrite(item.Raw, c.Text+"\n\n"+item.Added); err == nil {
		item.Raw = raw
	}
}

// strip leaves out an item's sealed reasoning. What cannot be read stays as it is.
func (t *Turn) strip(item *session.Item) {
	item.Raw = t.unbound(item.Raw)
	item.Parts = slices.Clone(item.Parts)
	for i, part := range item.Parts {
		item.Parts[i] = t.unbound(part)
	}
}

// unchanged reports whether the body goes upstream as it came, whatever the view.
func (t *Turn) unchanged() bool {
	return t.in.Wish == WishOff || t.in.Tenant.Passes() || t.relief.asItCame
}

// changed reports whether what goes upstream is not the body as it came.
func (t *Turn) changed() bool {
	return !t.unchanged() && (!t.shown.view.Identity() || t.Offers() || len(t.hidden.tail) > 0)
}

// Forwarded is the request's body with the view in the place of its messages; below every threshold the body itself.
func (t *Turn) Forwarded() [][]byte {
	bared := t.relief.bared > 0 || t.relief.recalled != nil
	if !t.changed() && (!bared || t.shown.view.Identity()) {
		return [][]byte{t.in.Body.Bytes()}
	}
	return t.joined(t.messages())
}

// joined is the request's body with messages in the place of its own.
func (t *Turn) joined(messages [][]byte) [][]byte {
	split := t.in.Split
	if t.Offers() {
		split = t.in.Dialect.Offer(split, t.hidden.tools)
	}
	if d, can := t.in.Dialect.(dialect.Unbinder); can && t.shown.unbound {
		split = d.Unbind(split)
	}
	return t.in.Dialect.Join(split, messages)
}

// messages are the view's, as they go upstream.
func (t *Turn) messages() [][]byte {
	items, record := t.written()
	messages, at := make([][]byte, 0, len(items)+len(t.hidden.tail)), -1
	for i := range items {
		if i == record {
			at = len(messages)
		}
		if items[i].Parts != nil {
			messages = append(messages, items[i].Parts...)
		} else {
			messages = append(messages, items[i].Raw)
		}
	}
	if d, can := t.in.Dialect.(dialect.Marker); can && at >= 0 {
		messages[at] = d.Mark(t.in.Split, messages, at)
	}
	return append(messages, t.hidden.tail...)
}

// written are the view's items as they go upstream, and which of them is the record and nothing else; -1: none is.
func (t *Turn) written() (items []session.Item, record int) {
	items, record = slices.Clone(t.shown.view.Items), -1
	for i := range items {
		if items[i].Index < 0 {
			items[i].Raw, record = t.in.Dialect.Note(items[i].Text()), i
		}
	}
	if !t.alternates() {
		return items, record
	}
	for i := range items {
		if items[i].Index >= 0 {
			items[i].Kind = cmp.Or(t.in.Split.Messages[items[i].Index].Spoken, items[i].Kind)
		}
	}
	items = alternate(t.in.Dialect, items)
	return items, slices.IndexFunc(items, func(i session.Item) bool { return i.Index < 0 && i.Summary != "" })
}

// leftOut stands between two messages that must not follow each other, where what stood between them is hidden.
const leftOut = "[Earlier messages are left out here.]"

// alternate writes a view's items, all of them written, for an upstream that wants users and assistants to take turns. Only what follows a
// gap is changed: a client's own order is passed on as it is.
func alternate(d dialect.Dialect, items []session.Item) (out []session.Item) {
	last, user := session.Kind(0), -1 // the kind of the last message that is no system message, and where in out the user's last one is
	add := func(item session.Item) {
		if item.Kind == session.User {
			user = len(out)
		}
		last, out = item.Kind, append(out, item)
	}
	merge := func(raw []byte) bool { // at the end of the user's last message, if there is one that takes it
		if user < 0 {
			return false
		}
		merged, err := d.Merge(out[user].Raw, raw)
		if err == nil {
			out[user].Raw = merged
		}
		return err == nil
	}
	next, gap := 0, false // the message that follows if nothing is hidden, and whether something is
	for _, item := range items {
		if item.Index < 0 { // the summary: where an assistant has spoken since the user's last message, it is one of its own
			if gap = true; last == session.Agent || !merge(item.Raw) {
				add(item)
			}
			continue
		}
		gap, next = gap || item.Index != next, item.Index+1
		if item.Kind == session.System {
			out = append(out, item)
			continue
		}
		if gap {
			gap = false
			speaks := item.Kind == session.Agent || item.Kind == session.Action
			switch {
			case item.Kind == session.User && last == session.User && merge(item.Raw):
				continue
			case item.Kind == session.User && last == session.Observation:
				add(session.Item{Index: -1, Kind: session.Agent, Raw: d.Reply(leftOut)})
			case speaks && last != session.User && last != session.Observation:
				add(session.Item{Index: -1, Kind: session.User, Raw: d.Note(leftOut)})
			}
		}
		add(item)
	}
	return out
}

// alternates reports whether the request's upstream is known to want roles to alternate.
func (t *Turn) alternates() bool { return t.relief.alternates || t.model.Alternates }

// Alternate has the view forwarded with alternating roles, because upstream refused it without. It reports whether that is another
// way than before.
func (t *Turn) Alternate() bool {
	if t.alternates() || !t.changed() {
		return false
	}
	t.relief.alternates = true
	return true
}
