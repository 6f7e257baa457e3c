package proxy

import (
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// recorder collects the record of one request, and passes it to the Observer at the end. It is used by one goroutine at a time.
type recorder struct {
	o       *Options
	ctx     context.Context // carries the request's span
	record  Record
	form    *engine.Form    // nil: not recognised
	endSpan func(*Record)   // ends the span of the call upstream; nil: there is none
	failed  string          // why the last condensation failed or fell back; empty: it did not
	skipped string          // why a request over a limit was not to be condensed; empty: it was to be
	idle    time.Duration   // since the thread was last seen
	price   model.Price     // of the model
	answer  *dialect.Answer // that upstream charges for; nil: it charges nothing
	bytes   int             // of the request's body, if that is still there
	ended   bool
	whole   engine.Whole // the answered request had nothing been hidden

	counted func(*Record) // counts the request in the totals of its run; nil: it has none
}

// condensing is called when a condensation begins, and the function that it returns when it has ended, with the condensations made. The
// context is for the calls of the condensation.
func (o *recorder) condensing(ctx context.Context, need condense.Need) (context.Context, func([]session.Condensation)) {
	begun := o.o.Now()
	endSpan := func([]session.Condensation) {}
	if o.o.Tracer != nil {
		ctx, endSpan = o.o.Tracer.Condensing(ctx, o.record.Condenser, need)
	}
	return ctx, func(made []session.Condensation) {
		o.record.Turn.Waits = append(o.record.Turn.Waits, o.o.Now().Sub(begun))
		endSpan(made)
	}
}

// noteOutcome records what condensing did, why it failed, and for what reason a request was due that was not condensed.
func (o *recorder) noteOutcome(outcome engine.Outcome, cause string, due session.Reason) {
	did := &o.record.Condensed
	did.Did, did.Whole = string(outcome), ""
	o.record.Turn.Due = due
	switch outcome {
	case engine.Failed:
		did.Whole = outcome
		if cause != "" {
			did.Did += ":" + cause
		}
	case engine.Cooling, engine.Uncut, engine.Loop, engine.Locked, engine.Refused, engine.Again, engine.HeldOut:
		did.Whole = outcome
	case engine.Observed, engine.Off:
		if due != "" {
			did.Whole = outcome
		}
	}
}

// beginCall is called before each call upstream.
func (o *recorder) beginCall(header http.Header) {
	now := o.o.Now()
	if o.record.Call.Sent.IsZero() {
		o.record.Times.Overhead = now.Sub(o.record.Times.Read) - o.record.Turn.Waited()
	}
	o.endCall()
	o.record.Call = Call{Sent: now}
	if o.o.Tracer != nil {
		o.endSpan = o.o.Tracer.Sending(o.ctx, &o.record, header)
	}
}

// callFailed is called if upstream gave no answer.
func (o *recorder) callFailed(err error) {
	o.record.Call.Code = CodeClientGone
	if e, ok := errors.AsType[apiError](err); ok {
		o.record.Call.Code = e.Code
	}
	o.endCall()
}

// endCall ends the span of the last call upstream.
func (o *recorder) endCall() {
	if o.endSpan != nil {
		o.endSpan(&o.record)
		o.endSpan = nil
	}
}

// firstByte is called whenever a part of the answer's body has been received.
func (o *recorder) firstByte() {
	if o.record.Call.First.IsZero() {
		o.record.Call.First = o.o.Now()
	}
}

// endRelayed ends a request whose answer was relayed, in full or up to err. failed tells that the answer itself reports an error, cut that it
// is a stream without its end mark.
func (o *recorder) endRelayed(status int, failed, cut bool, err error) {
	switch {
	case errors.Is(err, errClientGone), err != nil && errors.Is(context.Cause(o.ctx), errClientGone):
		o.end(status, CodeClientGone)
	case errors.Is(err, errDefect):
		o.end(status, codeInternal)
	case err != nil:
		o.end(status, CodeBroken)
	case status >= http.StatusInternalServerError, failed && status == http.StatusOK:
		o.end(status, CodeUpstream5xx)
	case status >= http.StatusBadRequest:
		o.end(status, CodeUpstream4xx)
	case cut:
		o.end(status, CodeUnfinished)
	default:
		o.end(status, "")
	}
}

// endTurn records the results of the turn. It may have to count tokens first.
func (o *recorder) endTurn() {
	t := o.record.Turn
	t.Condensed = o.form.Condensed()
	left := o.form.Left()
	t.Cause, t.LeftAt = left.Cause, left.Pos
	t.NewBlocks = o.form.Turn().NewBlocks()
	t.Before = o.form.Turn().Before()
	t.Known = o.form.Turn().Known()
	o.adjustSizes()
	if t.After != (session.Size{}) && o.record.Answered() {
		t.Account = o.account()
	}
}

// adjustSizes converts the record's sizes into the tokens that upstream charges: by its report of this request if that is believed,
// otherwise as the turn corrects its count.
func (o *recorder) adjustSizes() {
	t, usage, adjust := o.record.Turn, o.record.Call.Usage, o.form.Adjust
	if counted := t.After.Tokens; usage != nil && usage.Input > 0 && counted > 0 && !o.record.Call.Doubted {
		adjust = func(n int) int { return int(math.Round(float64(n) * float64(usage.Input) / float64(counted))) }
	}
	from := &t.Origins
	for _, n := range [...]*int{
		&t.Before.Tokens, &t.After.Tokens, &t.Known, &t.Supposed.Spared, &from.System, &from.Tools, &from.Head, &from.Record, &from.Kept, &from.New,
	} {
		*n = adjust(*n)
	}
	if o.whole.Tokens > 0 { // upstream has counted what was sent before it was hidden
		t.Before.Tokens, t.Known = o.whole.Tokens, o.whole.Known
	}
}

// account returns what the answered request cost and saved.
func (o *recorder) account() (a Account) {
	t := o.record.Turn
	b := o.billed()
	if o.record.Bill = o.bill(&b); o.record.Bill != nil {
		a.Charged = float64(o.record.Bill.Pico) / picosPerUSD
	}
	a.Saved, a.Priced = b.saved(), b.price.Known()
	if t.Spared > 0 {
		b.after = b.before - t.Spared
		b.condensed = t.Made
		if b.usage != nil { // of the whole request: it shows what the cache held
			b.known = max(b.usage.Cached, 0)
			b.idle = 0
			b.usage = nil
		}
		a.Spare = b.saved()
	}
	return a
}

// billed returns the bill of a recognised request.
func (o *recorder) billed() bill {
	t := o.record.Turn
	b := bill{
		before: t.Before.Tokens, after: t.After.Tokens, known: t.Known,
		idle: o.idle, condensed: len(t.Condensed) > 0, usage: o.record.Call.Usage, price: o.price,
	}
	if o.record.Call.Doubted {
		b.usage = nil
	}
	return b
}

// picosPerUSD converts dollars to trillionths, in which bills are exact.
const picosPerUSD = 1e12

// bill returns what upstream charges for the answer, nil if nothing. What it does not report is reckoned: the prompt by our count, of which a
// warm cache has what was sent before, if b is not nil; the output by its length. So is the output of an answer that was broken off.
func (o *recorder) bill(b *bill) *Bill {
	if o.answer == nil {
		return nil
	}
	charged, wrote := Bill{Priced: o.price.Known()}, (o.answer.Wrote+bytesPerToken-1)/bytesPerToken
	switch {
	case o.answer.Usage != nil:
		charged.Usage, charged.Reported = *o.answer.Usage, true
		if o.record.Code != "" && wrote > charged.Output {
			charged.Output, charged.Reported = wrote, false
		}
	case b != nil:
		_, cached := b.cached(min(float64(b.known), float64(b.before)), float64(b.before-b.after))
		charged.Usage = session.Usage{Input: b.after, Cached: int(cached), Output: wrote}
		if o.price.CacheWrite > o.price.Input {
			charged.Written = charged.Input - charged.Cached
		}
	default:
		charged.Usage = session.Usage{Input: o.bytes / bytesPerToken, Output: wrote}
	}
	charged.Pico = o.price.Pico(model.Usage(charged.Usage))
	return &charged
}

// bytesPerToken is about how many bytes of text a token has.
const bytesPerToken = 4

// Values of Record.Code for requests that got no error of ours.
const (
	CodeClientGone  = "client_gone"         // the client left
	CodeBroken      = "upstream_broken"     // upstream broke off its answer
	CodeUnfinished  = "upstream_unfinished" // upstream ended its stream as it should, but without the end mark
	CodeUpstream4xx = "upstream_4xx"        // upstream refused the request
	CodeUpstream5xx = "upstream_5xx"        // upstream failed
)

// end ends the request. Only the first call counts.
func (o *recorder) end(status int, code string) {
	if o.ended {
		return
	}
	o.ended = true
	o.record.Status = status
	o.record.Code = code
	if o.form != nil {
		o.o.guard(o.endTurn)
	}
	if o.record.Bill == nil {
		o.record.Bill = o.bill(nil)
	}
	o.endCall()
	o.record.Times.Ended = o.o.Now()
	o.o.Observer.Ended(o.ctx, &o.record)
	if o.counted != nil {
		o.counted(&o.record)
	}
}

// cacheLife is the longest that providers are known to keep an idle prefix in their prompt cache by default. After that, only what upstream
// reports as cached counts as cached.
const cacheLife = time.Hour

// cacheBlock is how many tokens OpenAI's prompt cache holds at least, and adds at a time:
// https://platform.openai.com/docs/guides/prompt-caching
const cacheBlock = 128

// bill compares the cost of a forwarded request with what it would have cost as the client sent it. Its counts are prompt tokens as upstream
// charges them.
type bill struct {
	before    int            // as the client sent it
	after     int            // as it was forwarded
	known     int            // the part of before that was sent earlier
	idle      time.Duration  // since the thread was last seen
	condensed bool           // by this request, so that upstream's cache no longer matches
	usage     *session.Usage // nil: upstream did not report it
	price     model.Price
}

// saved returns what condensing saved, less the cost of writing the prompt cache again; it is negative if the request cost more. The
// comparison is with the cheapest unchanged request, whose known part is read from a warm cache. So the provider's own discount never counts
// as ours.
func (b bill) saved() (s Saving) {
	if b.before == b.after || b.after <= 0 {
		return s
	}
	s.Tokens = b.before - b.after
	if !b.price.Known() {
		return s
	}
	full, sent, gone := float64(b.before), float64(b.after), float64(s.Tokens)
	would, did := b.cached(min(float64(b.known), full), gone)
	long := 0.0 // the share of the tokens written to the cache that stay there for an hour
	if b.usage != nil && b.usage.Written > 0 {
		long = float64(b.usage.WrittenLong) / float64(b.usage.Written)
	}
	s.NotSent, s.Rewritten = b.price.Saved(model.Prompt{
		Full: b.before, NotSent: gone, Rewritten: min(would, full) - min(did, sent) - gone, Caching: would > 0, Long: long,
	})
	return s
}

// cached returns how many tokens would have been read from the cache had the request been forwarded unchanged, and how many were.
func (b bill) cached(known, gone float64) (would, did float64) {
	warm := b.idle < cacheLife
	if b.usage != nil && b.usage.Cached > 0 && b.usage.Written == 0 && b.usage.Cached%cacheBlock == 0 {
		known -= math.Mod(known, cacheBlock)
	}
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
