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

	reshaped bool // the condenser shows another view than the condensations make
	attached bool // it shows images or files, whose tokens are estimates
}

// project returns the view of the history under condensations, of which the thread had seen altogether at the time.
func (t *Turn) project(applied []session.Condensation, seen int, to bound, b binding) projection {
	p := projection{view: session.Project(t.history, applied), applied: applied, seen: seen}
	condense.Render(t.in.Dialect, &p.view)
	b.unchanged, b.refused = p.view.Unchanged(), to.stripTo
	if len(p.view.Applied) > 0 && to.verbatim > 0 {
		b.end = to.verbatim + 1
	}
	for i := range p.view.Items {
		item := &p.view.Items[i]
		t.substitute(item)
		t.appendAdded(item)
		item.Strip = !b.free && (item.Strip || item.Parts != nil && p.view.Unbinds(t.history.Pos(item.Index)))
		if item.Strip {
			t.strip(item)
		}
	}
	return t.bind(p, b)
}

// reshaped returns the projection of a view that a condenser made of the form's. Answers before position end were bound to another view.
func (f *Form) reshaped(v session.View, end int) projection {
	v.Items = slices.Clone(v.Items)
	p := projection{view: v, applied: f.shown.applied, seen: f.shown.seen, reshaped: true}
	b := f.binding()
	b.unchanged, b.end = v.Unchanged(), end
	return f.turn.bind(p, b)
}

// rendered returns items as they go upstream, and the index of the one that consists of the record alone; -1: there is none.
func (t *Turn) rendered(items []session.Item) (out []session.Item, record int) {
	out, record = slices.Clone(items), -1
	for i := range out {
		if out[i].Index < 0 {
			out[i].Raw, record = t.in.Dialect.Note(out[i].Text()), i
		} else {
			out[i].Kind = cmp.Or(t.in.Split.Messages[out[i].Index].Spoken, out[i].Kind)
		}
	}
	return out, record
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
