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

// requested returns the need for a condensation that this request or an operator has asked for. A client's request is tried even while
// the summariser cools down. An operator's stays pending until a condensation is logged.
func (f *Form) requested() condense.Need {
	byClient := f.asked.wish == WishNow && len(f.made) == 0
	byLimit := f.asked.limit > 0 && len(f.made) == 0 && f.Exceeds(f.asked.limit)
	byOperator := f.place.Thread.Requested > 0 && !f.place.New
	if byClient || byLimit || byOperator {
		return condense.Need{Reason: session.ReasonRequest, Try: byClient}
	}
	return condense.Need{}
}

// decide asks the condenser about the form's view. It reads nothing but the form; how tokens are counted, and whether the summariser answers, is
// the condenser's and the counter's to know. As long as the request fits the window, nothing is due for a probe, nor for an agent that
// makes its own summary, since it must see what it summarises.
func (f *Form) decide() (in condense.Input, d condense.Decision) {
	in = f.input(f.requested())
	if !f.turn.purpose.Spares() || overWindow(in) {
		d = f.turn.in.Tenant.Condenser.Condense(in)
	}
	return in, d
}

// input returns what the condenser decides on: the view, with calibrated counts.
func (f *Form) input(need condense.Need) condense.Input {
	return f.inputFor(need, f.turn.counted().fixed, f.size().Tokens)
}

// belowAllThresholds reports whether nothing is due even for an upper bound of the token count, which is cheaper to find than the count
// itself. More tokens never make less due.
func (f *Form) belowAllThresholds() bool {
	if f.asked.wish == WishNow || f.asked.limit > 0 && f.calibrate(f.maxTokens()) > f.asked.limit {
		return false
	}
	d := f.turn.in.Tenant.Condenser.Condense(f.inputFor(f.requested(), f.turn.fixed(), f.maxTokens()))
	return d.View == nil && d.Job == nil && d.Obstacle == ""
}

// inputFor returns the condenser's input for a request of total tokens, fixed of which are not messages; both are uncalibrated. Whether
// it fits the window, or soon will not, is judged by the larger of both counts, since upstream may report too little.
func (f *Form) inputFor(need condense.Need, fixed, total int) condense.Input {
	need.AtOnce = (need.AtOnce || f.neverWaits() || f.known.paused) && !need.Ahead
	need.WindowOnly = need.WindowOnly || f.turn.purpose == session.PurposeCompaction
	reserved, window := f.reserved(), f.relief.window
	byLarger := need.Ahead && need.WindowOnly || window > 0 && total+min(reserved, window/2) > window
	in := condense.Input{
		View:     &f.shown.view,
		Total:    f.calibrate(total),
		Measure:  func(items []session.Item) []int { return f.measure(items, byLarger) },
		Count:    f.turn.counter.Text,
		Ratio:    float64(f.Adjust(1000)) / 1000,
		Fixed:    f.calibrate(fixed),
		Window:   window,
		Reserved: reserved,
		Need:     need,
		Model:    f.turn.in.Split.Model,
		Upstream: f.turn.in.Upstream,
		Codec:    f.turn.in.Dialect,
		Work:     f.turn.engine.summaries.Compute,
		Thread:   f.thread(),

		NeedsReasoning: f.turn.in.Split.NeedsReasoning, CutsLoops: f.keepsReasoning() || f.unbinds(),
	}
	if f.relief.files > 0 {
		in.Total = in.Fixed + sum(in.Measure(in.View.Items))
	}
	if byLarger {
		in.Total, in.Fixed = max(in.Total, total), max(in.Fixed, fixed)
	}
	return in
}

// minCacheLife is the shortest time for which a provider caches an idle prefix.
const minCacheLife = 5 * time.Minute

// thread returns what a condenser knows about the thread.
func (f *Form) thread() condense.Thread {
	c := condense.Thread{
		Name: string(f.place.Thread.ID), Instructions: f.turn.in.Told, Asked: f.turn.hidden.asked, Sent: &sending{f},
		Recall: f.turn.offersRecall(),
	}
	if p := f.place.Thread.ForkAt + 1; f.place.Thread.Follows != "" && p <= f.turn.history.Len() && f.turn.history.Message(p).Kind == session.User {
		c.Edited = p
	}
	if !f.place.New {
		c.Idle = f.known.now.Sub(f.place.Thread.Seen)
	}
	if c.Idle >= minCacheLife {
		c.CacheFor = f.turn.in.Dialect.CacheTTL(f.turn.in.Split.Body)
	}
	return c
}

// neverWaits reports whether the request must not wait for a model, or not any longer.
func (f *Form) neverWaits() bool {
	return f.spent() || (f.turn.in.Tenant.Never || f.losesSummaries()) && f.asked.wish != WishNow
}

// maxLost is how many threads in a row may lose their summaries until no model writes one for the request that begins another.
const maxLost = 2

// losesSummaries reports whether a summary would probably serve this request only: the client changed its history before each of the last
// ones, so that no earlier summary fits any more.
func (f *Form) losesSummaries() bool { return f.place.Thread.Lost >= maxLost }

// mayNotReturn reports whether nothing shows yet that the history will come back: the thread begins with this request, does not continue another
// one, and the client asked for no condensation. Agents send some histories once, such as those of planning steps. No summary is
// prepared for such a history until it has come back.
func (f *Form) mayNotReturn() bool {
	t := &f.turn.place.Thread
	return f.turn.place.New && t.Follows == "" && (t.Parent == "" || t.ForkAt > 0) && f.asked.wish != WishNow && f.asked.limit == 0
}

// measure counts items, calibrated, and not below our own count if atLeastOurs is set. A summary is not calibrated: the proxy wrote it,
// so it is no cause of upstream's higher counts. Upstream's excess over our count is attributed to images and files, if there are any.
func (f *Form) measure(items []session.Item, atLeastOurs bool) []int {
	counts, r := f.itemTokens(f.turn.tokens, items), &f.relief
	for i, n := range counts {
		if items[i].Index < 0 {
			continue
		}
		counts[i] = f.calibrate(n)
		if r.files > 0 && f.turn.in.Split.Messages[items[i].Index].Attached {
			theirs := r.theirs - (r.ours - r.files) // upstream's count of messages with files
			counts[i] = max(counts[i], int(float64(theirs)/float64(r.files)*float64(n)))
		}
		if atLeastOurs {
			counts[i] = max(counts[i], n)
		}
	}
	return counts
}

// reserved returns the tokens to reserve for the answer: the client's limit or else the model's, within reason.
func (f *Form) reserved() int {
	switch {
	case f.turn.in.Split.MaxOutput > 0:
		return f.turn.in.Split.MaxOutput
	case f.relief.minReserve:
		return f.relief.window / 64
	}
	return min(f.turn.model.MaxOutput, f.relief.window/8)
}

// overWindow reports whether the request does not fit the model's window.
func overWindow(in condense.Input) bool { return in.Window > 0 && in.Total+in.Reserved > in.Window }

// Probes reports whether the request is a probe: it is not a step of the conversation, and is not logged.
func (t *Turn) Probes() bool { return t.purpose == session.PurposeProbe }

// unabridged returns the form for an agent that makes its own summary: it shows as much of its history as fits the window, under as few of the
// applicable condensations as possible; readable returns those of them that can be read. If the history does not fit under all of them, it is
// condensed like any other.
//
// Under fewer condensations, no sealed reasoning is shown: later answers were bound to the condensed history.
func (t *Turn) unabridged(
	applied []session.Condensation, readable func([]session.Condensation) ([]session.Condensation, error),
) (*Form, error) {
	for n := range applied {
		fewer, err := readable(applied[:n])
		if err != nil {
			return nil, fmt.Errorf("read condensations: %w", err)
		}
		f := t.form(fewer)
		b := f.binding()
		b.end = math.MaxInt
		f.shown = f.turn.bind(f.shown, b)
		if !overWindow(f.input(condense.Need{})) {
			return f, nil
		}
	}
	return t.form(applied), nil
}

// abridged returns the form that shows the history under all condensations, after upstream refused it unabridged. It reports whether that was
// the case.
func (f *Form) abridged(ctx context.Context) (*Form, bool) {
	if f.turn.purpose != session.PurposeCompaction {
		return f, false
	}
	applied, err := f.turn.registry.Condensations(ctx, f.at())
	if err != nil || len(applied) <= len(f.shown.applied) {
		return f, false
	}
	return f.afresh(applied), true
}

// sending is the form that a condensation finds in upstream's cache: the one that would be sent without it. A condenser may show another view
// in the same step as it condenses; that one is what the job's summariser would be asked behind.
type sending struct{ form *Form }

var _ condense.Prefix = (*sending)(nil)

// Cached implements condense.Prefix.
func (s *sending) Cached(v *session.View) int {
	f := s.form
	own, r := f.shown.view.Items, &f.relief
	isOwn := len(own) > 0 && len(own) == len(v.Items) && &own[0] == &v.Items[0]
	refusedBefore := r.tries > 0 || r.refused || r.strippedTo > 0 || r.withheld != nil
	if !isOwn || f.verbatim() || f.alternates() || f.turn.remote() || refusedBefore || len(f.calls.tail) > 0 {
		return 0
	}
	if last := f.known.usage; last.cachedBy == f.turn.counter.cacheKey {
		return last.cached
	}
	return 0
}

// Prompt identifies what precedes the messages of a prompt, on which a prompt cache depends. Its values are valid only in this process.
type Prompt struct {
	Endpoint uint64 // upstream and key
	Tools    uint64
	System   uint64 // the system prompt
}

// promptOf returns what precedes the messages, and a key that identifies all of that and the model.
func (t *Turn) promptOf() (p Prompt, key uint64) {
	hash := func(write func(*maphash.Hash)) uint64 {
		var h maphash.Hash
		h.SetSeed(t.engine.counts.seed)
		write(&h)
		return h.Sum64()
	}
	p.Endpoint = hash(func(h *maphash.Hash) { _, _ = fmt.Fprintf(h, "%q %q", t.in.Upstream.BaseURL, t.in.Upstream.APIKey) })
	p.Tools = hash(func(h *maphash.Hash) { _, _ = h.Write(t.in.Split.Tools) })
	p.System = hash(func(h *maphash.Hash) {
		for i := range t.in.Split.Messages {
			m := &t.in.Split.Messages[i]
			if m.Kind != session.System {
				break
			}
			_, _ = h.Write(m.Digest[:])
		}
	})
	return p, hash(func(h *maphash.Hash) {
		_, _ = fmt.Fprintf(h, "%d %d %d %q", p.Endpoint, p.Tools, p.System, t.in.Split.Model)
	})
}

// maxReusedBody is the size in bytes up to which a body is copied for a summary call. The copy is not counted in the body budget.
const maxReusedBody = 4 << 20

// Ask implements condense.Prefix.
func (s *sending) Ask(question string, output int) []byte {
	f := s.form
	limit := f.turn.in.Split.MaxOutput
	if limit > 0 && limit < output || len(f.turn.in.Split.Body) > maxReusedBody {
		return nil
	}
	return f.turn.in.Dialect.Reuse(slices.Concat(f.joinBody(append(f.messages(), f.turn.in.Dialect.Note(question)))...), output)
}

// Supposed is what would have been condensed in a request that is forwarded unchanged. Spared and Made are set only for tenants that
// observe, and assume that the thread had been condensed from the start. Tokens are uncalibrated.
type Supposed struct {
	Due    session.Reason // why it would have been condensed; empty: nothing was due
	Spared int            // tokens that would not have been forwarded
	Made   bool           // a condensation would have been made for this request
}

// suppose works out what would be forwarded, taking summaries to be as long as their room. It makes no call, and logs nothing.
func (f *Form) suppose() (s Supposed) {
	s.Due = f.dueReason()
	logged, id := len(f.shown.applied), f.place.Thread.ID
	earlier, _ := f.turn.engine.memory.supposed.Get(id)
	applied := session.Applicable(f.turn.history, slices.Concat(f.shown.applied, earlier))
	f = f.showing(f.project(applied))
	for range maxCondensations {
		_, d := f.decide()
		if d.Job == nil {
			break
		}
		c, summary := d.Job.Plan()
		c.ID = session.CondensationID{Thread: id, Seq: 1<<62 + uint64(len(applied))} // unlike the id of any logged one
		if n := len(applied); n > 0 {
			c.Base = applied[n-1].ID
		}
		if summary > 0 {
			text := strings.Repeat(" a", summary) // about that many tokens
			c.Summary = strings.Repeat(" a", summary*summary/max(f.turn.counter.Text(text), 1))
		}
		applied, s.Made = append(applied, c), true
		f = f.showing(f.project(applied))
	}
	if s.Made {
		f.turn.engine.memory.supposed.Add(id, applied[min(logged, len(applied)):])
	}
	s.Spared = max(f.turn.Before().Tokens-f.size().Tokens, 0)
	return s
}
