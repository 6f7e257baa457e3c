package engine

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Report is what one step of a turn did.
type Report struct {
	Attempts []Attempt
	Due      session.Reason // what a tenant that only observes would have had condensed for
	Window   int            // the context window that upstream told of, in tokens, 0: none
	Panic    any            // that a condensation ended with, nil: none did

	Doubted   bool       // upstream's count is not believed
	Misreport *Misreport // for the log: the first such count of a model; else nil
}

// Attempt is a condensation that was tried. The request goes on in any case.
type Attempt struct {
	Thread   session.ThreadID
	Reason   session.Reason
	Made     *session.Condensation // nil: it failed
	Fallback error                 // why it has no summary of the summariser's; nil: it has one, or needs none
	Redeems  int                   // provisional condensations whose summary it brings
	Replaced error                 // why the request's own model wrote it instead of the configured one; nil: it did not
	Err      error                 // why it failed
}

func (t *Turn) failed(r *Report, a Attempt) {
	a.Thread = t.place.Thread.ID
	r.Attempts = append(r.Attempts, a)
}

// made reports whether anything was condensed.
func (r *Report) made() bool {
	return slices.ContainsFunc(r.Attempts, func(a Attempt) bool { return a.Made != nil })
}

func condensedBy(c *session.Condensation) Condensed {
	return Condensed{
		Reason: c.Reason, Made: c.Made(), Events: c.Before.Events - c.After.Events, Tokens: c.Before.Tokens - c.After.Tokens,
		Before: c.Before.Tokens, After: c.After.Tokens,
	}
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
