package engine

import (
	"math"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Bare has a body that upstream refused as it came forwarded without its sealed reasoning: what was answered to a condensed history
// is bound to that. It reports whether that makes a difference. An open tool loop that needs its reasoning keeps its own.
func (t *Turn) Bare() bool {
	if t.relief.bared > 0 || t.changed() || t.remote() || !t.condensed() && !t.missed() {
		return false
	}
	p, end, sent := t.project(nil), endOfBonds(t.input(condense.Need{})), 0
	if t.relief.recalled != nil {
		sent = t.shown.bared()
	}
	t.bare(p.view.Items, end)
	if p.bared() == sent {
		return false
	}
	t.show(p)
	t.relief.asItCame, t.relief.bared = true, min(end-1, t.history.Len())
	return true
}

// bared is how many messages a projection shows without their sealed reasoning.
func (p *projection) bared() (n int) {
	for i := range p.view.Items {
		if p.view.Items[i].Strip {
			n++
		}
	}
	return n
}

// endOfBonds is the position from which sealed reasoning stays: that of the open tool loop that needs it, if there is one.
func endOfBonds(in condense.Input) int {
	if loop := in.Loop(); loop > 0 {
		return loop
	}
	return math.MaxInt
}

// condensed reports whether the thread's answers may be bound to a condensed history. The tenant's requests may pass as they come by now.
func (t *Turn) condensed() bool { return len(t.place.Thread.Condensations)+len(t.hidden.asides) > 0 }

// missed reports whether the history has answers with sealed reasoning to requests that the log does not hold, since the store was away
// or has lost them: those may have been condensed.
func (t *Turn) missed() bool {
	if t.engine.memory.lost.Contains(t.place.Thread.ID) {
		return true
	}
	missing := 0
	for i := range t.in.Split.Messages {
		if t.in.Split.Messages[i].Sealed && t.history.Pos(i) > t.place.Logged {
			missing++
		}
	}
	return missing > 1 || missing == 1 && t.place.New // of a request that is held, the answer comes with the next
}

// Bare is a request's body without its sealed reasoning, for one that upstream refused as it came and whose thread is not known: it
// may have been condensed before. It is nil where that makes no difference. An open tool loop that needs its reasoning keeps its own.
func Bare(d dialect.Dialect, split *dialect.Request) [][]byte {
	view := session.View{History: session.NewHistory(session.Hash{}, split.Messages)}
	end := endOfBonds(condense.Input{View: &view, NeedsReasoning: split.NeedsReasoning})
	messages, bared := make([][]byte, len(split.Messages)), false
	for i, m := range split.Messages {
		messages[i] = m.Raw
		if !m.Sealed || view.History.Pos(i) >= end {
			continue
		}
		if raw, err := d.StripReasoning(m.Raw); err == nil {
			messages[i], bared = raw, true
		}
	}
	if !bared {
		return nil
	}
	return d.Join(split, messages)
}
