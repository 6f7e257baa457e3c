package proxy

import (
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/model"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// observation notes what becomes of one request, and tells the Observer at its end. It is used by one goroutine at a time.
type observation struct {
	o      *Options        // nil: nothing has begun
	ctx    context.Context // carries the request's span
	record Record
	turn   *engine.Turn  // nil: not recognised
	called func(*Record) // ends the span of the call upstream; nil: there is none
	failed string        // why the last condensation did not go as configured, empty if it did
	idle   time.Duration // since the thread was last seen
	price  model.Price   // of the model
	over   bool
}

// condensing is when a condensation begins. The function that it returns is called at its end with what was condensed, and
// the context is for what it calls.
func (o *observation) condensing(ctx context.Context, need condense.Need) (context.Context, func([]session.Condensation)) {
	begun, end := o.o.Now(), func([]session.Condensation) {}
	if o.o.Tracer != nil {
		ctx, end = o.o.Tracer.Condensing(ctx, o.record.Condenser, need)
	}
	return ctx, func(made []session.Condensation) {
		o.record.Turn.Waits = append(o.record.Turn.Waits, o.o.Now().Sub(begun))
		end(made)
	}
}

// condensed is what condensing did, with a word for why it failed, and what a request that is left alone would have been condensed for.
func (o *observation) condensed(what engine.Outcome, cause string, due session.Reason) {
	did := &o.record.Condensed
	did.Did, did.Whole, o.record.Turn.Due = string(what), "", due
	switch what {
	case engine.Failed:
		if cause != "" {
			did.Did += ":" + cause
		}
		did.Whole = what
	case engine.Cooling, engine.Uncut, engine.Loop, engine.Locked, engine.Refused, engine.Again, engine.HeldOut:
		did.Whole = what
	case engine.Observed, engine.Off:
		if due != "" {
			did.Whole = what
		}
	}
}

// sending is when a call upstream begins.
func (o *observation) sending(header http.Header) {
	now := o.o.Now()
	if o.record.Call.Sent.IsZero() {
		o.record.Times.Overhead = now.Sub(o.record.Times.Read)
		if t := o.record.Turn; t != nil {
			for _, wait := range t.Waits {
				o.record.Times.Overhead -= wait
			}
		}
	}
	o.endCall()
	o.record.Call = Call{Sent: now}
	if o.o.Tracer != nil {
		o.called = o.o.Tracer.Sending(o.ctx, &o.record, header)
	}
}

// answered is when upstream's header has come, or did not come.
func (o *observation) answered(resp *http.Response, err error) {
	if err == nil {
		o.record.Call.Status = resp.StatusCode
		return
	}
	o.record.Call.Code = CodeClientGone
	if e, is := errors.AsType[apiError](err); is {
		o.record.Call.Code = e.Code
	}
	o.endCall()
}

// endCall ends the span of the last call upstream.
func (o *observation) endCall() {
	if o.called != nil {
		o.called(&o.record)
		o.called = nil
	}
}

// firstByte is when some of the answer's body has come.
func (o *observation) firstByte() {
	if o.record.Call.First.IsZero() {
		o.record.Call.First = o.o.Now()
	}
}

// relayed is when an answer has been handed on, or has broken off.
func (o *observation) relayed(status int, err error) {
	switch {
	case errors.Is(err, errClientGone), err != nil && errors.Is(context.Cause(o.ctx), errClientGone):
		o.end(status, CodeClientGone)
	case errors.Is(err, errDefect):
		o.end(status, codeInternal)
	case err != nil:
		o.end(status, CodeBroken)
	case status >= http.StatusInternalServerError:
		o.end(status, CodeUpstream5xx)
	case status >= http.StatusBadRequest:
		o.end(status, CodeUpstream4xx)
	default:
		o.end(status, "")
	}
}

// endTurn notes what was done for a request that was recognised. It may have to count tokens first.
func (o *observation) endTurn() {
	o.record.Turn.Condensed, o.record.Turn.Cause = o.turn.Condensed(), o.turn.Cause()
	o.record.Turn.Before, o.record.Turn.Known = o.turn.Before(), o.turn.Known()
	o.record.Condensed.Repeated = o.turn.Repeated()
	o.charged()
}

// charged has the request's sizes in the tokens that upstream charges.
func (o *observation) charged() {
	t, u, adjust := o.record.Turn, o.record.Call.Usage, o.turn.Adjust
	if counted := t.After.Tokens; u != nil && u.Input > 0 && counted > 0 && !o.record.Call.Doubted {
		adjust = func(n int) int { return int(math.Round(float64(n) * float64(u.Input) / float64(counted))) }
	}
	for _, n := range [...]*int{&t.Before.Tokens, &t.After.Tokens, &t.Known, &t.Supposed.Spared} {
		*n = adjust(*n)
	}
	if t.After != (session.Size{}) && o.record.Call.Status == http.StatusOK {
		t.Account = o.account()
	}
}

// account is what the answered request came to.
func (o *observation) account() (a Account) {
	t, u := o.record.Turn, o.record.Call.Usage
	if u != nil {
		a.Charged = o.price.Call(model.Usage(*u))
	}
	b := bill{before: t.Before.Tokens, after: t.After.Tokens, known: t.Known, idle: o.idle, condensed: len(t.Condensed) > 0, usage: u, price: o.price}
	if o.record.Call.Doubted {
		b.usage = nil
	}
	a.Saved = b.saved()
	if t.Spared > 0 {
		b.after, b.condensed = b.before-t.Spared, t.Made
		if b.usage != nil { // the request went whole: this is what the cache had of it
			b.known, b.idle, b.usage = max(b.usage.Cached, 0), 0, nil
		}
		a.Spare = b.saved()
	}
	return a
}

// The codes of requests that got no error of ours.
const (
	CodeClientGone  = "client_gone"     // the client left
	CodeBroken      = "upstream_broken" // upstream broke off its answer
	CodeUpstream4xx = "upstream_4xx"    // upstream refused the request
	CodeUpstream5xx = "upstream_5xx"    // or failed
)

// end is when a request is over. Only the first end counts.
func (o *observation) end(status int, code string) {
	if o.over || o.o == nil {
		return
	}
	o.over, o.record.Status, o.record.Code = true, status, code
	if o.turn != nil {
		o.o.survives(o.endTurn)
	}
	o.endCall()
	o.record.Times.Ended = o.o.Now()
	o.o.Observer.Ended(o.ctx, &o.record)
}

// cacheLife is the longest that providers are known to keep an idle prefix in their prompt cache by default. Beyond it
// nothing is taken to be cached but what upstream reports.
const cacheLife = time.Hour

// bill is what one forwarded request comes to, compared with what it would have come to as the client sent it. Tokens are
// those of the prompt that upstream charges.
type bill struct {
	before    int            // as the client sent it
	after     int            // as it was forwarded
	known     int            // the part of before that was sent earlier already
	idle      time.Duration  // since the thread was last seen
	condensed bool           // by this request: what upstream had cached does not match any more
	usage     *session.Usage // nil: upstream did not report it
	price     model.Price
}

// saved is what condensing saved of this request, net of the prompt cache that has to be written again: negative where the
// request cost more. It is measured against the cheapest that the request could have been unchanged: all that was sent
// earlier read from a warm cache. So the discount that the provider gives anyway never counts as ours.
func (b bill) saved() (s Saving) {
	if b.before == b.after || b.after <= 0 {
		return s
	}
	s.Tokens = b.before - b.after
	full, sent, gone := float64(b.before), float64(b.after), float64(s.Tokens)
	if !b.price.Known() {
		return s
	}
	would, did := b.caches(min(float64(b.known), full), gone)
	s.NotSent, s.Rewritten = b.price.Saved(model.Prompt{
		NotSent: gone, Rewritten: min(would, full) - min(did, sent) - gone, Caching: would > 0, Long: b.long(),
	})
	return s
}

// long is the share of what was written to the cache that stays there for an hour.
func (b bill) long() float64 {
	if b.usage == nil || b.usage.Written <= 0 {
		return 0
	}
	return float64(b.usage.WrittenLong) / float64(b.usage.Written)
}

// caches is how many tokens would have come from the cache had the request stayed as it was, and how many did.
func (b bill) caches(known, gone float64) (would, did float64) {
	warm := b.idle < cacheLife
	switch {
	case b.usage != nil && b.usage.Cached > 0:
		did = float64(b.usage.Cached)
		if !warm {
			known = 0
		}
		return max(known, did), did
	case b.usage != nil && !b.condensed, !warm:
		return 0, 0 // the cache was cold, or there is none
	case b.condensed:
		return known, 0
	}
	return known, max(known-gone, 0)
}
