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
func (t *Turn) requested() condense.Need {
	byClient := t.in.Wish == WishNow && len(t.made) == 0
	byLimit := t.in.Limit > 0 && len(t.made) == 0 && t.Exceeds(t.in.Limit)
	byOperator := t.place.Thread.Requested > 0 && !t.place.New
	if byClient || byLimit || byOperator {
		return condense.Need{Reason: session.ReasonRequest, Try: byClient}
	}
	return condense.Need{}
}

// Exceeds reports whether what would be forwarded has more than limit tokens.
func (t *Turn) Exceeds(limit int) bool { return t.calibrate(t.size().Tokens) > limit }

// decide asks the condenser about the view. As long as the request fits the window, nothing is due for a probe, nor for an agent that
// makes its own summary, since it must see what it summarises.
func (t *Turn) decide() (in condense.Input, d condense.Decision) {
	in = t.input(t.requested())
	if !t.purpose.Spares() || overWindow(in) {
		d = t.in.Tenant.Condenser.Condense(in)
	}
	return in, d
}

// input returns what the condenser decides on: the view, with calibrated counts.
func (t *Turn) input(need condense.Need) condense.Input {
	return t.inputFor(need, t.counted().fixed, t.size().Tokens)
}

// belowAllThresholds reports whether nothing is due even for an upper bound of the token count, which is cheaper to find than the count
// itself. More tokens never make less due.
func (t *Turn) belowAllThresholds() bool {
	if t.in.Wish == WishNow || t.in.Limit > 0 && t.calibrate(t.maxTokens()) > t.in.Limit {
		return false
	}
	d := t.in.Tenant.Condenser.Condense(t.inputFor(t.requested(), t.fixed(), t.maxTokens()))
	return d.View == nil && d.Job == nil && d.Kept == ""
}

// inputFor returns the condenser's input for a request of total tokens, fixed of which are not messages; both are uncalibrated. Whether
// it fits the window, or soon will not, is judged by the larger of both counts, since upstream may report too little.
func (t *Turn) inputFor(need condense.Need, fixed, total int) condense.Input {
	need.AtOnce = (need.AtOnce || t.neverWaits() || t.engine.pauses()) && !need.Ahead
	need.WindowOnly = need.WindowOnly || t.purpose == session.PurposeCompaction
	reserved, window := t.reserved(), t.model.Window
	byLarger := need.Ahead && need.WindowOnly || window > 0 && total+min(reserved, window/2) > window
	in := condense.Input{
		View:     &t.shown.view,
		Total:    t.calibrate(total),
		Measure:  func(items []session.Item) []int { return t.measure(items, byLarger) },
		Count:    t.counter.Text,
		Ratio:    float64(t.Adjust(1000)) / 1000,
		Fixed:    t.calibrate(fixed),
		Window:   window,
		Reserved: reserved,
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
	if byLarger {
		in.Total, in.Fixed = max(in.Total, total), max(in.Fixed, fixed)
	}
	return in
}

// minCacheLife is the shortest time for which a provider caches an idle prefix.
const minCacheLife = 5 * time.Minute

// thread returns what a condenser knows about the thread.
func (t *Turn) thread() condense.Thread {
	c := condense.Thread{
		Name: string(t.place.Thread.ID), Instructions: t.in.Told, Sent: t,
		Recall: t.in.Tenant.Hidden.Recall, // not whether this request offers it, or the prefix would differ between requests
	}
	if p := t.place.Thread.ForkAt + 1; t.place.Thread.Follows != "" && p <= t.history.Len() && t.history.Message(p).Kind == session.User {
		c.Edited = p
	}
	if !t.place.New {
		c.Idle = t.engine.o.Now().Sub(t.place.Thread.Seen)
	}
	if c.Idle >= minCacheLife {
		c.CacheFor = t.in.Dialect.CacheTTL(t.in.Split.Body)
	}
	return c
}

// neverWaits reports whether the request must not wait for a model, or not any longer.
func (t *Turn) neverWaits() bool {
	return t.spent() || (t.in.Tenant.Never || t.losesSummaries()) && t.in.Wish != WishNow
}

// maxLost is how many threads in a row may lose their summaries until no model writes one for the request that begins another.
const maxLost = 2

// losesSummaries reports whether a summary would probably serve this request only: the client changed its history before each of the last
// ones, so that no earlier summary fits any more.
func (t *Turn) losesSummaries() bool { return t.place.Thread.Lost >= maxLost }

// measure counts items, calibrated, and not below our own count if atLeastOurs is set. A summary is not calibrated: the proxy wrote it,
// so it is no cause of upstream's higher counts. Upstream's excess over our count is attributed to images and files, if there are any.
func (t *Turn) measure(items []session.Item, atLeastOurs bool) []int {
	counts, r := t.itemTokens(t.tokens, items), &t.relief
	for i, n := range counts {
		if items[i].Index < 0 {
			continue
		}
		counts[i] = t.calibrate(n)
		if r.files > 0 && t.in.Split.Messages[items[i].Index].Attached {
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
func (t *Turn) reserved() int {
	switch {
	case t.in.Split.MaxOutput > 0:
		return t.in.Split.MaxOutput
	case t.relief.minReserve:
		return t.model.Window / 64
	}
	return min(t.model.MaxOutput, t.model.Window/8)
}

// overWindow reports whether the request does not fit the model's window.
func overWindow(in condense.Input) bool { return in.Window > 0 && in.Total+in.Reserved > in.Window }

// Probes reports whether the request is a probe: it is not a step of the conversation, and is not logged.
func (t *Turn) Probes() bool { return t.purpose == session.PurposeProbe }

// showUnabridged shows an agent that makes its own summary as much of its history as fits the window, under as few of the applicable
// condensations as possible; readable returns those of them that can be read. If the history does not fit under all of them, it is
// condensed like any other.
//
// Under fewer condensations, no sealed reasoning is shown: later answers were bound to the condensed history.
func (t *Turn) showUnabridged(
	applied []session.Condensation, readable func([]session.Condensation) ([]session.Condensation, error),
) error {
	for n := range applied {
		fewer, err := readable(applied[:n])
		if err != nil {
			return fmt.Errorf("read condensations: %w", err)
		}
		t.show(t.rebound(t.project(fewer), 0, math.MaxInt))
		if !overWindow(t.input(condense.Need{})) {
			return nil
		}
	}
	t.show(t.project(applied))
	return nil
}

// showAbridged shows the history under all condensations, after upstream refused it unabridged. It reports whether that was the case.
func (t *Turn) showAbridged(ctx context.Context) bool {
	if t.purpose != session.PurposeCompaction {
		return false
	}
	applied, err := t.registry.Condensations(ctx, &t.place)
	if err != nil || len(applied) <= len(t.shown.applied) {
		return false
	}
	t.show(t.project(applied))
	t.relief.beforeTrial, t.relief.trial = t.shown, nil
	return true
}

var _ condense.Prefix = (*Turn)(nil)

// Cached implements condense.Prefix.
func (t *Turn) Cached(v *session.View) int {
	own, r := t.shown.view.Items, &t.relief
	isOwn := len(own) > 0 && len(own) == len(v.Items) && &own[0] == &v.Items[0]
	refusedBefore := r.tries > 0 || r.refused || r.strippedTo > 0 || r.withheld != nil
	if !isOwn || t.verbatim() || t.alternates() || t.remote() || refusedBefore || len(t.hidden.tail) > 0 {
		return 0
	}
	last, _ := t.engine.memory.usages.Get(t.place.Thread.ID)
	if last.cachedBy != t.counter.cacheKey {
		return 0
	}
	return last.cached
}

// cacheKey identifies everything in front of the messages that a prompt cache depends on: upstream, key, model, tools and system prompt.
func (t *Turn) cacheKey() uint64 {
	var h maphash.Hash
	h.SetSeed(t.engine.counts.seed)
	_, _ = fmt.Fprintf(&h, "%q %q %q", t.in.Upstream.BaseURL, t.in.Upstream.APIKey, t.in.Split.Model)
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

// maxReusedBody is the size in bytes up to which a body is copied for a summary call. The copy is not counted in the body budget.
const maxReusedBody = 4 << 20

// Ask implements condense.Prefix.
func (t *Turn) Ask(question string, output int) []byte {
	limit := t.in.Split.MaxOutput
	if limit > 0 && limit < output || len(t.in.Split.Body) > maxReusedBody {
		return nil
	}
	return t.in.Dialect.Reuse(slices.Concat(t.joinBody(append(t.messages(), t.in.Dialect.Note(question)))...), output)
}

// Supposed is what would have been condensed in a request that is forwarded unchanged. Spared and Made are set only for tenants that
// observe, and assume that the thread had been condensed from the start. Tokens are uncalibrated.
type Supposed struct {
	Due    session.Reason // why it would have been condensed; empty: nothing was due
	Spared int            // tokens that would not have been forwarded
	Made   bool           // a condensation would have been made for this request
}

// suppose works out what would be forwarded, taking summaries to be as long as their room. It makes no call, and logs nothing.
func (t *Turn) suppose() (s Supposed) {
	s.Due = t.dueReason()
	shown, id := t.shown, t.place.Thread.ID
	defer func() { t.show(shown) }()
	earlier, _ := t.engine.memory.supposed.Get(id)
	applied := session.Applicable(t.history, slices.Concat(shown.applied, earlier))
	t.show(t.project(applied))
	for range maxCondensations {
		_, d := t.decide()
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
