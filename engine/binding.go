package engine

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// bound says to which earlier answers' sealed reasoning upstream objected, or would object. A position of 0 means none.
type bound struct {
	verbatim int // the last answer to a request that was forwarded unchanged, although its thread has condensations
	stripTo  int // the last answer whose reasoning upstream refused
}

// binding says which sealed reasoning does not fit a projection, beyond what its condensations say. Positions are those of answers.
type binding struct {
	unchanged  int  // items before this index are shown as they were when all later answers were given
	end        int  // of the items after them, answers before this position were bound to another view
	refused    int  // upstream has refused the reasoning of answers up to this position
	alternates bool // roles alternate, so that a summary may become part of any user message in front of it
	free       bool // upstream does not check what stands before an answer: only what it has refused is left out
	asks       bool // upstream can be asked to drop what is bound to another history
}

// reasoning says how a form treats sealed reasoning.
type reasoning int

// The values of reasoning.
const (
	reasoningOfModel   reasoning = iota // as is right for what is known about the model and upstream
	reasoningUntouched                  // it stays: upstream refused the request to drop what does not fit
	reasoningPlaced                     // it is treated as bound to its place: upstream refused it elsewhere, although the model is known not to
)

// keepsReasoning reports whether sealed reasoning stays where its answers stay: its signature proves who wrote it and not what stood before it,
// or upstream does not know how to be asked to drop what is bound to another history, and so checks no such bond.
func (f *Form) keepsReasoning() bool {
	return f.relief.reasoning == reasoningUntouched || f.turn.byAuthor && f.relief.reasoning != reasoningPlaced
}

// unbinds reports whether upstream can be asked to drop sealed reasoning that is bound to another history.
func (f *Form) unbinds() bool {
	_, can := f.turn.in.Dialect.(dialect.Unbinder)
	return can && !f.turn.neverUnbinds && f.relief.reasoning != reasoningUntouched
}

// binding returns the part of a binding that is the same for all projections of the form.
func (f *Form) binding() binding {
	return binding{alternates: f.alternates(), free: f.keepsReasoning(), asks: f.unbinds()}
}

// bind removes the sealed reasoning that is bound to another history from a projection, whose items nothing else may use. In an open tool loop
// that needs its reasoning, it shows as much as upstream demands, if upstream can be asked to drop what is bound to another history.
func (t *Turn) bind(p projection, b binding) projection {
	for i := range p.view.Items {
		item := &p.view.Items[i]
		if item.Index < 0 {
			continue
		}
		p.attached = p.attached || t.in.Split.Messages[item.Index].Attached
		pos := t.history.Pos(item.Index)
		merged := b.alternates && slices.ContainsFunc(p.view.Applied, func(c session.Condensation) bool { return pos <= c.Stripped })
		if !b.free && (i >= b.unchanged && pos < b.end || merged) || b.refused > 0 && pos <= b.refused {
			t.unseal(item)
		}
	}
	if b.asks && !b.free {
		t.keepLoopReasoning(&p)
	}
	t.hideReplaced(p.view.Items)
	return p
}

// unseal removes an item's sealed reasoning, if it has any.
func (t *Turn) unseal(item *session.Item) {
	if !item.Strip && (item.Parts != nil || t.in.Split.Messages[item.Index].Sealed) {
		item.Strip, item.Loose = true, false
		t.strip(item)
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

// keepLoopReasoning shows the first and the newest answer of an open tool loop with the sealed reasoning that upstream demands there. It must be
// asked to drop what of it is bound to another history.
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
// than in the history, if the user's message before it is hidden. It reports false if no open loop needs its reasoning.
func (t *Turn) loopEnds(v *session.View) (first, newest int, open bool) {
	if t.openLoop() == 0 {
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
func (p *projection) isLoose() bool {
	return slices.ContainsFunc(p.view.Items, func(i session.Item) bool { return i.Loose })
}
