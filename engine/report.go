package engine

import (
	"cmp"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Report is what one step of a turn did.
type Report struct {
	Attempts []Attempt
	Kept     Outcome // what became of the request where nothing was tried
	Window   int     // the context window that upstream told of, in tokens, 0: none
	Panic    any     // that a condensation ended with, nil: none did

	Supposed

	Doubted   bool       // upstream's count is not believed
	Misreport *Misreport // for the log: the first such count of a model; else nil
}

// Attempt is a condensation that was tried, or a summary that was to be prepared. The request goes on in any case.
type Attempt struct {
	Session  session.SessionID
	Thread   session.ThreadID
	Reason   session.Reason
	Made     *session.Condensation // nil: it failed, or was only prepared
	Fallback error                 // why it has no summary of the summariser's; nil: it has one, or needs none
	Redeems  int                   // provisional condensations whose summary it brings
	Replaced error                 // why the request's own model wrote it instead of the configured one; nil: it did not
	Err      error                 // why it failed
	Cost     session.Cost          // zero where Err says that it goes on, or where what is shown was prepared: that was reported then
	Ahead    bool                  // its summary was to be prepared: nothing is due yet, or excerpts stand in
}

// attempted reports what was tried.
func (t *Turn) attempted(r *Report, a Attempt) {
	a.Session, a.Thread = t.place.Thread.Session, t.place.Thread.ID
	a.Ahead = t.waits.flight != nil && t.waits.flight.ahead
	r.Attempts = append(r.Attempts, a)
}

// Outcome is what condensing did for a request.
type Outcome string

// The outcomes.
const (
	Below    Outcome = "below"    // nothing was due
	Done     Outcome = "done"     // it was condensed
	Excerpts Outcome = "excerpts" // it was condensed without the summary that was due
	Shaped   Outcome = "shaped"   // the condenser shows another view of it, as for each request
	Failed   Outcome = "failed"   // the last attempt says why
	Cooling  Outcome = "cooling"  // its summariser failed a short while ago
	Uncut    Outcome = "uncut"    // nothing that may go would make enough of a difference
	Loop     Outcome = "loop"     // it waits for the end of a tool loop that needs its reasoning
	Locked   Outcome = "locked"   // another request is condensing the thread
	Refused  Outcome = "refused"  // upstream refused it a short while ago for what was changed
	Again    Outcome = "again"    // it came before, and went as it did then
	HeldOut  Outcome = "held_out" // its session is one that others are compared with
	Observed Outcome = "observed" // its tenant only observes
	Off      Outcome = "off"      // its client wants nothing condensed
)

// Outcome sums the report up; empty where the step was not about condensing.
func (r *Report) Outcome() Outcome {
	for _, a := range slices.Backward(r.Attempts) {
		switch {
		case a.Made != nil && a.Fallback != nil:
			return Excerpts
		case a.Made != nil:
			return Done
		}
	}
	if len(r.Attempts) > 0 {
		return Failed
	}
	return r.Kept
}

// add takes in what a further step did.
func (r *Report) add(step Report) {
	r.Attempts = append(r.Attempts, step.Attempts...)
	r.Kept, r.Panic = cmp.Or(step.Kept, r.Kept), cmp.Or(step.Panic, r.Panic)
}

// made reports whether anything was condensed.
func (r *Report) made() bool {
	return slices.ContainsFunc(r.Attempts, func(a Attempt) bool { return a.Made != nil })
}

// redeemed is how many provisional condensations a summary makes up for: those since the summary before it.
func redeemed(applied []session.Condensation, c *session.Condensation) (n int) {
	if c.Model == "" || c.Provisional {
		return 0
	}
	for i := len(applied) - 1; i >= 0 && applied[i].Model == ""; i-- {
		if applied[i].Provisional {
			n++
		}
	}
	return n
}
