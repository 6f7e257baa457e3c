package engine

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
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
		Ratio:    float64(t.Adjust(1000)) / 1000,
		Fixed:    t.adjust(fixed),
		Window:   t.model.Window,
		Reserved: room,
		Need:     need,
		Model:    t.in.Split.Model,
		Upstream: t.in.Upstream,
		Codec:    t.in.Dialect,
		Work:     t.engine.flights.compute,
		Thread:   t.thread(),

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

// shortestLife is the shortest that a provider keeps an idle prefix in its cache.
const shortestLife = 5 * time.Minute

// thread is what a condenser is told of the thread.
func (t *Turn) thread() condense.Thread {
	c := condense.Thread{
		Name: string(t.place.Thread.ID), Told: t.in.Told, Sent: t,
		Recall: t.in.Tenant.Hidden.Recall, // the same for all requests of a thread, or its prefix would not be
	}
	if !t.place.New {
		c.Idle = t.engine.o.Now().Sub(t.place.Thread.Seen)
	}
	if c.Idle >= shortestLife { // until then any cache has it
		c.Keeps = t.in.Dialect.Keeps(t.in.Split.Body)
	}
	return c
}

// hurries reports whether the request waits for no model.
func (t *Turn) hurries() bool { return t.in.Tenant.Never && t.in.Wish != WishNow }

// measure counts items, corrected, or at least as we count them; but not a summary, which is text of ours, whatever makes the
// count of the client's messages too low. What upstream counted beyond ours is put down to images and files, if there are any.
func (t *Turn) measure(items []session.Item, raw bool) []int {
	counts, r := t.itemTokens(items), &t.relief
	for i, n := range counts {
		if items[i].Index < 0 {
			continue
		}
		counts[i] = t.adjust(n)
		if r.files > 0 && t.in.Split.Messages[items[i].Index].Attached {
			counts[i] = max(counts[i], int(float64(r.theirs-(r.ours-r.files))/float64(r.files)*float64(n)))
		}
		if raw {
			counts[i] = max(counts[i], n)
		}
	}
	return counts
}

// reserved is the room that the request's answer needs: what the client allows, or else what the model may take at most, within reason.
func (t *Turn) reserved() int {
	switch {
	case t.in.Split.MaxOutput > 0:
		return t.in.Split.MaxOutput
	case t.relief.tight:
		return t.model.Window / 64
	}
	return min(t.model.MaxOutput, t.model.Window/8)
}

// overWindow reports whether the request does not fit the model's window.
func overWindow(in condense.Input) bool { return in.Window > 0 && in.Total+in.Reserved > in.Window }

// Probes reports whether the request only tries its history: it is no step of the conversation, and is not logged.
func (t *Turn) Probes() bool { return t.purpose == session.PurposeProbe }

// unabridged shows an agent that makes its own summary as much of its history as fits the window: all of it, or what the fewest of
// the condensations that apply leave, as legible reads them. What does not fit under all of them is condensed like any request that is
// too long. Where fewer are shown, no sealed reasoning is: what was answered after the others was bound to the condensed history.
func (t *Turn) unabridged(
	applied []session.Condensation, legible func([]session.Condensation) ([]session.Condensation, error),
) error {
	for n := range applied {
		fewer, err := legible(applied[:n])
		if err != nil {
			return fmt.Errorf("read condensations: %w", err)
		}
		t.show(t.project(fewer))
		t.show(t.reshaped(t.shown.view, math.MaxInt))
		if !overWindow(t.input(condense.Need{})) {
			return nil
		}
	}
	t.show(t.project(applied))
	return nil
}

// abridge shows what all condensations leave, where more was shown and upstream did not take it. It reports whether that was so.
func (t *Turn) abridge(ctx context.Context) bool {
	if t.purpose != session.PurposeCompaction {
		return false
	}
	applied, err := t.registry.Condensations(ctx, &t.place)
	if err != nil || len(applied) <= len(t.shown.applied) {
		return false
	}
	t.show(t.project(applied))
	t.relief.before, t.relief.trial = t.shown, nil
	return true
}

var _ condense.Prefix = (*Turn)(nil)

// Cached implements condense.Prefix.
func (t *Turn) Cached(v *session.View) int {
	own := t.shown.view.Items
	same := len(own) > 0 && len(own) == len(v.Items) && &own[0] == &v.Items[0]
	r := &t.relief
	if !same || t.unchanged() || t.alternates() || t.remote() || r.tries > 0 || r.refused || r.bared > 0 || r.recalled != nil || len(t.hidden.tail) > 0 {
		return 0
	}
	last, _ := t.engine.memory.usages.Get(t.place.Thread.ID)
	if last.cachedBy != t.counter.cachedBy {
		return 0
	}
	return last.cached
}

// cachedBy names the upstream, key and model of a request, and the tools and the system prompt that it begins with: a cache that was reported
// for others has nothing of it.
func (t *Turn) cachedBy() uint64 {
	var h maphash.Hash
	h.SetSeed(t.engine.counts.seed)
	for _, text := range [...]string{t.in.Upstream.BaseURL, t.in.Upstream.APIKey, t.in.Split.Model} {
		_, _ = h.WriteString(text)
		_ = h.WriteByte(0)
	}
	_, _ = h.Write(t.in.Split.Tools)
	for i := range t.in.Split.Messages {
		m := &t.in.Split.Messages[i]
		if m.Kind != session.System {
			break
		}
		_, _ = h.Write(m.Digest[:])
	}
	return h.Sum64()
}

// largestReused is the largest body that is copied to be asked once more, in bytes: copies are not a part of the bytes in flight.
const largestReused = 4 << 20

// Ask implements condense.Prefix.
func (t *Turn) Ask(question string, output int) []byte {
	if most := t.in.Split.MaxOutput; most > 0 && most < output || len(t.in.Split.Body) > largestReused {
		return nil
	}
	return t.in.Dialect.Reuse(slices.Concat(t.joined(append(t.messages(), t.in.Dialect.Note(question)))...), output)
}

// Supposed is what would have been done for a request that is left alone. But for Due it is told of tenants that only observe, and as if the
// thread had been condensed all along. Tokens are before calibration.
type Supposed struct {
	Due    session.Reason // for which it would be condensed, where nothing is: its tenant observes, or its client wants none of it
	Spared int            // tokens that would not have been forwarded
	Made   bool           // a condensation would have been made for this request
}

// suppose works out what would be forwarded. Summaries are taken to be as long as their room. Nothing is asked, logged or shown.
func (t *Turn) suppose() (s Supposed) {
	s.Due = t.due()
	shown, id := t.shown, t.place.Thread.ID
	defer func() { t.show(shown) }()
	earlier, _ := t.engine.memory.supposed.Get(id)
	applied := session.Applicable(t.history, slices.Concat(shown.applied, earlier))
	t.show(t.project(applied))
	for range mostCondenses {
		_, d := t.decide()
		if d.Job == nil {
			break
		}
		c, summary := d.Job.Plan()
		c.ID = session.CondensationID{Thread: id, Seq: 1<<62 + uint64(len(applied))} // unlike that of any logged one
		if n := len(applied); n > 0 {
			c.Base = applied[n-1].ID
		}
		if summary > 0 {
			text := strings.Repeat(" a", summary) // of about that many tokens
			c.Summary = strings.Repeat(" a", summary*summary/max(t.counter.Text(text), 1))
		}
		applied, s.Made = append(applied, c), true
		t.show(t.project(applied))
	}
	if s.Made {
		t.engine.memory.supposed.Add(id, applied[min(len(shown.applied), len(applied)):])
	}
	s.Spared = max(t.Before().Tokens-t.size().Tokens, 0)
	return s
}
