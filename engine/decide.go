package engine

import (
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// wanted is what was asked for from outside: by this request, or by an operator for the thread. What a client asks for is tried
// whatever the summariser's health; what an operator asked for is pending until a condensation is logged.
func (t *Turn) wanted() condense.Need {
	byClient := t.in.Wish == WishNow && len(t.made) == 0
	byLimit := t.in.Limit > 0 && len(t.made) == 0 && t.Exceeds(t.in.Limit)
	byOperator := t.place.Thread.Requested > 0 && !t.place.New
	if byClient || byLimit || byOperator {
		return condense.Need{Reason: session.ReasonRequest, Try: byClient}
	}
	return condense.Need{}
}

// Exceeds reports whether what would be forwarded has more tokens than that.
func (t *Turn) Exceeds(limit int) bool { return t.adjust(t.size().Tokens) > limit }

// decide asks the condenser about the view as it stands. Nothing is to be done, if what goes upstream fits, where the agent is making its
// own summary and must see what it summarises, or only probes.
func (t *Turn) decide() (in condense.Input, d condense.Decision) {
	if in = t.input(t.wanted()); !t.purpose.Spares() || overWindow(in) {
		d = t.in.Tenant.Condenser.Condense(in)
	}
	return in, d
}

// input is what the condenser decides on: the view as it stands, counts corrected by what upstream has reported of the
// model.
func (t *Turn) input(need condense.Need) condense.Input {
	return t.inputOf(need, t.counted().fixed, t.size().Tokens)
}

// belowAllThresholds is true if nothing is due even under the upper bound of the tokens. More tokens never make less due.
func (t *Turn) belowAllThresholds() bool {
	if t.in.Wish == WishNow || t.in.Limit > 0 && t.adjust(t.atMost()) > t.in.Limit {
		return false
	}
	d := t.in.Tenant.Condenser.Condense(t.inputOf(t.wanted(), t.fixed(), t.atMost()))
	return d.View == nil && d.Job == nil && d.Kept == ""
}

// inputOf is the input where the view has so many tokens, and so many others are fixed; both before calibration. The window is
// judged by the larger of both counts: what upstream reports may be wrong.
func (t *Turn) inputOf(need condense.Need, fixed, total int) condense.Input {
	need.AtOnce, need.Spares = t.hurries() && !need.Ahead, t.purpose == session.PurposeCompaction
	room, raw := t.reserved(), false
	if t.model.Window > 0 {
		raw = total+min(room, t.model.Window/2) > t.model.Window
	}
	in := condense.Input{
		View:     &t.shown.view,
		Total:    t.adjust(total),
		Measure:  func(items []session.Item) []int { return t.measure(items, raw) },
		Count:    t.counter.Text,
		Ratio:    float64(t.Adjust(perMille)) / perMille,
		Fixed:    t.adjust(fixed),
		Window:   t.model.Window,
		Reserved: room,
		Need:     need,
		Model:    t.in.Split.Model,
		Upstream: t.in.Upstream,
		Codec:    t.in.Dialect,
		Work:     t.engine.flights.compute,
		Thread: condense.Thread{
			Name: string(t.place.Thread.ID), Idle: t.idle(), Keeps: t.keeps(), Told: t.in.Told, Sent: t,
			Recall: t.in.Tenant.Hidden.Recall, // the same for all requests of a thread, or its prefix would not be
		},

		NeedsReasoning: t.in.Split.NeedsReasoning,
	}
	if t.relief.files > 0 {
		in.Total = in.Fixed + sum(in.Measure(in.View.Items))
	}
	if raw {
		in.Total, in.Fixed = max(in.Total, total), max(in.Fixed, fixed)
	}
	return in
}

// idle is how long ago the thread's last request came, 0 if there was none.
func (t *Turn) idle() time.Duration {
	if t.place.New {
		return 0
	}
	return t.engine.o.Now().Sub(t.place.Thread.Seen)
}

// shortestLife is the shortest that a provider keeps an idle prefix in its cache.
const shortestLife = 5 * time.Minute

// keeps is how long the client asks for an idle prefix to be kept, 0 while any cache has it.
func (t *Turn) keeps() time.Duration {
	if t.idle() >= shortestLife {
		return t.in.Dialect.Keeps(t.in.Split.Body)
	}
	return 0
}

// hurries reports whether the request waits for no model.
func (t *Turn) hurries() bool { return t.in.Tenant.Never && t.in.Wish != WishNow }

const perMille = 1000

// measure counts items, corrected, or at least as we count them; but not a summary, which is text of ours, whatever makes the
// count of the client's messages too low.
func (t *Turn) measure(items []session.Item, raw bool) []int {
	counts := t.itemTokens(items)
	for i, n := range counts {
		if items[i].Index < 0 {
			continue
		}
		if counts[i] = t.adjustItem(&items[i], n); raw {
			counts[i] = max(counts[i], n)
		}
	}
	return counts
}

// reserved is the room that the request's answer needs.
func (t *Turn) reserved() int {
	if t.relief.tight {
		return t.model.Window / 64
	}
	return reserved(t.in.Split.MaxOutput, t.model)
}

// reserved is the room the answer needs: what the client allows, or else what the model may take at most, within reason.
func reserved(asked int, model Model) int {
	if asked > 0 {
		return asked
	}
	return min(model.MaxOutput, model.Window/8)
}

// overWindow reports whether the request does not fit the model's window.
func overWindow(in condense.Input) bool { return in.Window > 0 && in.Total+in.Reserved > in.Window }
