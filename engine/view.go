package engine

import (
	"cmp"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// projection is a view together with the condensations it results from.
type projection struct {
	view    session.View
	applied []session.Condensation
	seen    int // number of the thread's condensations at the time

	attached bool // it shows images or files, whose tokens are estimates
}

// show makes p the projection that is forwarded. Only show may set it.
func (t *Turn) show(p projection) {
	p.attached = p.attached || slices.ContainsFunc(p.view.Items, func(i session.Item) bool {
		return i.Index >= 0 && t.in.Split.Messages[i.Index].Attached
	})
	t.shown = p
}

// project returns the view of the history under condensations.
func (t *Turn) project(applied []session.Condensation) projection {
	p := projection{view: session.Project(t.history, applied), applied: applied, seen: len(t.place.Thread.Condensations)}
	condense.Render(t.in.Dialect, &p.view)
	unchanged := p.view.Unchanged()
	for i := range p.view.Items {
		item := &p.view.Items[i]
		t.substitute(item)
		t.appendAdded(item)
		item.Strip = item.Strip || item.Parts != nil && p.view.Unbinds(t.history.Pos(item.Index))
		if item.Strip {
			t.strip(item)
		}
	}
	if pos, known := t.engine.memory.verbatim.Get(t.place.Thread.ID); known && len(p.view.Applied) > 0 {
		t.stripBefore(p.view.Items[unchanged:], pos+1)
	}
	if pos, known := t.engine.memory.stripTo.Get(t.place.Thread.ID); known {
		t.stripBefore(p.view.Items, pos+1)
	}
	return t.rebound(p, 0, 0)
}

// reshaped returns the projection of a view that a condenser made. Answers before position end were bound to another view, so they are
// shown without their sealed reasoning, unless everything before them is unchanged.
func (t *Turn) reshaped(v session.View, end int) projection {
	return t.rebound(projection{view: v, applied: t.shown.applied, seen: t.shown.seen}, v.Unchanged(), end)
}

// rebound strips the sealed reasoning of those items after the first unchanged ones that are before position end. If roles must alternate, a
// summary may become part of any user message in front of it, so then all answers given before a condensation are stripped.
func (t *Turn) rebound(p projection, unchanged, end int) projection {
	t.stripBefore(p.view.Items[unchanged:], end)
	if t.alternates() {
		for _, c := range p.view.Applied {
			t.stripBefore(p.view.Items, c.Stripped+1)
		}
	}
	t.keepLoopReasoning(&p)
	t.hideReplaced(p.view.Items)
	return p
}

// keepLoopReasoning shows the first and the newest answer of an open tool loop with the sealed reasoning that upstream demands there. It
// applies only where upstream can be asked to drop reasoning that is bound to another history.
func (t *Turn) keepLoopReasoning(p *projection) {
	first, newest, open := t.loopEnds(&p.view)
	if !open {
		return
	}
	for _, i := range [...]int{first, newest} {
		if item := &p.view.Items[i]; item.Strip {
			item.Raw, item.Strip, item.Loose = t.in.Split.Messages[item.Index].Raw, false, true
			t.substitute(item)
		}
	}
}

// loopEnds returns the indices of the items with the first and the newest answer of the tool loop that upstream sees open. It may begin earlier
// than in the history, if the user's message before it is hidden. It reports false if no open loop needs its reasoning, or if upstream cannot be
// asked to drop reasoning.
func (t *Turn) loopEnds(v *session.View) (first, newest int, open bool) {
	if _, can := t.in.Dialect.(dialect.Unbinder); !can || t.openLoop() == 0 {
		return 0, 0, false
	}
	first, newest = -1, -1
	results := false // the user and tool messages behind i include a tool result
	for i := range slices.Backward(v.Items) {
		switch v.Items[i].Kind {
		case session.Action, session.Agent:
			if !results {
				return first, newest, first >= 0
			}
			first, newest = i, max(newest, i)
		case session.Observation:
			results = true
		case session.User:
			results = results && first != i+1
		}
	}
	return first, newest, first >= 0
}

// openLoop returns the position at which the open tool loop that needs its reasoning begins; 0: there is none.
func (t *Turn) openLoop() int {
	return condense.Input{View: &session.View{History: t.history}, NeedsReasoning: t.in.Split.NeedsReasoning}.Loop()
}

// isLoose reports whether the view shows reasoning that upstream must be asked to drop.
func (t *Turn) isLoose() bool {
	return slices.ContainsFunc(t.shown.view.Items, func(i session.Item) bool { return i.Loose })
}

// Unbinding returns the header that asks upstream to drop reasoning bound to another history; empty if none is needed.
func (t *Turn) Unbinding() (name, value string) {
	if d, can := t.in.Dialect.(dialect.Unbinder); can && t.isLoose() && t.rewrites() {
		return d.UnbindHeader()
	}
	return "", ""
}

// stripBefore strips the sealed reasoning of all items before position end.
func (t *Turn) stripBefore(items []session.Item, end int) {
	for i := range items {
		item := &items[i]
		if item.Index < 0 || item.Strip || t.history.Pos(item.Index) >= end {
			continue
		}
		if item.Parts != nil || t.in.Split.Messages[item.Index].Sealed {
			item.Strip, item.Loose = true, false
			t.strip(item)
		}
	}
}

// appendAdded appends an item's added text to its message. A message that cannot hold it stays as it is.
func (t *Turn) appendAdded(item *session.Item) {
	if item.Added == "" || item.Index < 0 {
		return
	}
	if raw, err := t.in.Dialect.Merge(item.Raw, t.in.Dialect.Note(item.Added)); err == nil {
		item.Raw = raw
		return
	}
	// A tool result of the Responses API cannot be merged with a message.
	c, err := t.in.Dialect.Read(item.Raw)
	if err != nil || len(c.Images)+len(c.Files) > 0 {
		return
	}
	if raw, err := t.in.Dialect.Rewrite(item.Raw, c.Text+"\n\n"+item.Added); err == nil {
		item.Raw = raw
	}
}

// strip removes an item's sealed reasoning.
func (t *Turn) strip(item *session.Item) {
	item.Raw = t.withoutReasoning(item.Raw)
	item.Parts = slices.Clone(item.Parts)
	for i, part := range item.Parts {
		item.Parts[i] = t.withoutReasoning(part)
	}
}

// verbatim reports whether the client's body is forwarded unchanged, whatever the view.
func (t *Turn) verbatim() bool {
	return t.in.Wish == WishOff || t.in.Tenant.Passes() || t.relief.verbatim
}

// changed reports whether what goes upstream differs from the client's body.
func (t *Turn) changed() bool {
	return !t.verbatim() && (!t.shown.view.Identity() || t.Offers() || len(t.hidden.tail) > 0)
}

// Forwarded returns the body that goes upstream, in pieces: the client's body with the view in place of its messages, or the body itself
// if nothing has changed.
func (t *Turn) Forwarded() [][]byte {
	if !t.rewrites() {
		return [][]byte{t.in.Split.Body}
	}
	return t.joinBody(t.messages())
}

// rewrites reports whether the body that goes upstream is not the client's own: it is changed, or without sealed reasoning.
func (t *Turn) rewrites() bool {
	stripped := t.relief.strippedTo > 0 || t.relief.withheld != nil
	return t.changed() || stripped && (!t.shown.view.Identity() || t.isLoose())
}

// joinBody returns the request's body with the given messages in place of its own.
func (t *Turn) joinBody(messages [][]byte) [][]byte {
	split := t.in.Split
	if t.Offers() {
		split = t.in.Dialect.Offer(split, t.hidden.tools)
	}
	if d, can := t.in.Dialect.(dialect.Unbinder); can && t.isLoose() {
		split = d.Unbind(split)
	}
	return t.in.Dialect.Join(split, messages)
}

// messages returns the messages that go upstream: the view's, and those of hidden calls.
func (t *Turn) messages() [][]byte {
	items, record := t.rendered()
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

// rendered returns the view's items as they go upstream, and the index of the one that consists of the record alone; -1: there is none.
func (t *Turn) rendered() (items []session.Item, record int) {
	items, record = slices.Clone(t.shown.view.Items), -1
	for i := range items {
		if items[i].Index < 0 {
			items[i].Raw, record = t.in.Dialect.Note(items[i].Text()), i
		} else {
			items[i].Kind = cmp.Or(t.in.Split.Messages[items[i].Index].Spoken, items[i].Kind)
		}
	}
	if !t.alternates() {
		return items, record
	}
	items = alternate(t.in.Dialect, items)
	return items, slices.IndexFunc(items, func(i session.Item) bool { return i.Index < 0 && i.Summary != "" })
}

// omission separates two messages that must not follow each other, where the messages between them are hidden.
const omission = "[Earlier messages are left out here.]"

// alternation builds a list of items in which the roles of user and assistant alternate.
type alternation struct {
	d    dialect.Dialect
	out  []session.Item
	last session.Kind // of the last message that is not a system message
	user int          // index in out of the last user message; -1: none
}

func (a *alternation) add(item session.Item) {
	if item.Kind == session.User {
		a.user = len(a.out)
	}
	a.last = item.Kind
	a.out = append(a.out, item)
}

// merge appends raw to the last user message, and reports whether there is one that takes it.
func (a *alternation) merge(raw []byte) bool {
	if a.user < 0 {
		return false
	}
	merged, err := a.d.Merge(a.out[a.user].Raw, raw)
	if err == nil {
		a.out[a.user].Raw = merged
	}
	return err == nil
}

// addAfterGap adds an item in front of which messages are hidden.
func (a *alternation) addAfterGap(item session.Item) {
	speaks := item.Kind.ByModel()
	switch {
	case item.Kind == session.User && a.last == session.User && a.merge(item.Raw):
		return
	case item.Kind == session.User && a.last == session.Observation:
		a.add(session.Item{Index: -1, Kind: session.Agent, Raw: a.d.Reply(omission)})
	case speaks && a.last != session.User && a.last != session.Observation:
		a.add(session.Item{Index: -1, Kind: session.User, Raw: a.d.Note(omission)})
	}
	a.add(item)
}

// alternate rearranges a view's rendered items for an upstream that requires user and assistant to alternate. It changes only what
// follows a gap: the client's own order is passed on.
func alternate(d dialect.Dialect, items []session.Item) []session.Item {
	a := alternation{d: d, user: -1}
	next, gap := 0, false // index of the next message if none is hidden, and whether some are
	for _, item := range items {
		if item.Index < 0 { // a summary: a message of its own only if the assistant has spoken since the last user message
			gap = true
			if a.last == session.Agent || !a.merge(item.Raw) {
				a.add(item)
			}
			continue
		}
		gap = gap || item.Index != next
		next = item.Index + 1
		switch {
		case item.Kind == session.System:
			a.out = append(a.out, item)
		case gap:
			a.addAfterGap(item)
			gap = false
		default:
			a.add(item)
		}
	}
	return a.out
}

// alternates reports whether upstream is known to require alternating roles.
func (t *Turn) alternates() bool { return t.relief.alternates || t.model.Alternates }

// AlternateRoles makes the turn forward the view with alternating roles, because upstream refused it without. It reports whether that changes
// anything.
func (t *Turn) AlternateRoles() bool {
	if t.alternates() || !t.changed() {
		return false
	}
	t.relief.alternates = true
	p := t.shown
	p.view.Items = slices.Clone(p.view.Items)
	t.show(t.rebound(p, 0, 0))
	return true
}
