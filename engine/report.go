package engine

import (
	"cmp"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Report is the result of one step of a turn.
type Report struct {
	Attempts []Attempt
	Outcome  Outcome // if nothing was attempted; see Overall
	Remedy   Remedy  // how the request was changed after upstream refused it; empty: it was not
	Window   int     // the context window that was learnt from upstream, in tokens; 0: none
	Panic    any     // value that a condensation panicked with; nil: none did

	Supposed

	Doubted   bool       // upstream's count is not believed
	Whole     Whole      // what upstream would have counted had nothing been hidden
	Misreport *Misreport // the first such count of a model, to be logged; else nil
	Cramped   *Cramped   // the first such request of a model, to be logged; else nil
}

// Cramped is a request above a configured limit that system prompt and tools nearly fill.
type Cramped struct {
	Tokens int // of the request
	Memory int // that a condensation leaves of its history
}

// Attempt is a condensation that was tried, or a summary that was to be prepared. The request goes on in any case.
type Attempt struct {
	Session  session.SessionID
	Thread   session.ThreadID
	Reason   session.Reason
	Made     *session.Condensation // nil: it failed, or was only prepared
	Fallback error                 // why it has no summary by the summariser; nil: it has one, or needs none
	Redeems  int                   // number of provisional condensations that its summary covers
	Replaced error                 // why the request's own model wrote it instead of the configured one; nil: it did not
	Err      error                 // why it failed
	Cost     session.Cost          // zero while it goes on (ErrDeadline), and if it was prepared: the cost was reported then
	Ahead    bool                  // its summary was to be prepared: nothing is due yet, or excerpts stand in
}

// failed returns the attempt as one whose condensation was not logged.
func (a *Attempt) failed(err error) Attempt {
	return Attempt{Reason: a.Reason, Fallback: a.Fallback, Err: err, Cost: a.Cost}
}

// attempted adds an attempt to a report.
func (f *Form) attempted(r *Report, a Attempt) {
	a.Session, a.Thread = f.place.Thread.Session, f.place.Thread.ID
	a.Ahead = f.waits.task != nil && f.waits.task.Ahead
	r.Attempts = append(r.Attempts, a)
}

// Outcome is what condensing did for a request.
type Outcome string

// Outcomes of condensing.
const (
	Below     Outcome = "below"         // nothing was due
	Done      Outcome = "done"          // condensed
	Excerpts  Outcome = "excerpts"      // condensed without the summary that was due
	Shaped    Outcome = "shaped"        // the condenser shows another view for this request only
	Failed    Outcome = "failed"        // the last attempt has the reason
	Cooling   Outcome = "cooling"       // the summariser failed recently
	Uncut     Outcome = "uncut"         // hiding what may be hidden would not save enough
	Loop      Outcome = "loop"          // waiting for the end of a tool loop that needs its reasoning
	Preparing Outcome = "preparing"     // it is due by price, and goes on as it is until its summary is written
	Locked    Outcome = "locked"        // another request is condensing the thread
	Refused   Outcome = "refused"       // upstream recently refused a changed request of the thread
	Again     Outcome = "again"         // a retry, forwarded as it was before
	HeldOut   Outcome = "held_out"      // the session is held out for comparison
	Unread    Outcome = "kept_upstream" // upstream keeps a history of which not all is known
	Observed  Outcome = "observed"      // the tenant only observes
	Off       Outcome = "off"           // the client does not want condensing
)

// Skips reports whether the outcome is that of a request which was not to be condensed: nothing failed.
func (o Outcome) Skips() bool { return o == Off || o == Observed || o == HeldOut || o == Again }

// Overall returns the outcome of the step as a whole: that of its attempts, if there were any. It is empty if the step was not about condensing.
func (r *Report) Overall() Outcome {
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
	return r.Outcome
}

// add adds the report of a further step.
func (r *Report) add(step Report) {
	r.Attempts = append(r.Attempts, step.Attempts...)
	r.Outcome, r.Panic = cmp.Or(step.Outcome, r.Outcome), cmp.Or(step.Panic, r.Panic)
}

// made reports whether anything was condensed.
func (r *Report) made() bool {
	return slices.ContainsFunc(r.Attempts, func(a Attempt) bool { return a.Made != nil })
}

// redeemed returns how many provisional condensations a summary covers: those since the previous summary.
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
