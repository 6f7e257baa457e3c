package journal

import (
	"context"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// Ended counts a request that has ended, and records it if it was recognised as one of a session.
func (j *Journal) Ended(_ context.Context, r *proxy.Record) {
	j.count(r)
	if r.Turn != nil && !r.Counts() {
		s := stepOf(r)
		if s.Miss = j.missOf(r, s.Usage); s.Miss != "" {
			j.o.Missed(r.Tenant, s.Miss)
		}
		j.add(s)
	}
}

// stepOf returns the step that a request was.
func stepOf(r *proxy.Record) account.Step {
	t := r.Turn
	s := account.Step{
		Session: t.Session, Thread: t.Thread, Request: r.Asked.ID, Begun: r.Times.Begun, Answer: t.Step,
		Tenant: r.Tenant, Protocol: r.Dialect, Model: r.Asked.Model, Client: account.ClientOf(r.Asked.Agent),
		Status: r.Status, Code: r.Code, Before: t.Before, After: t.After, Parts: account.Parts(t.Origins),
		Due: t.Due, Did: r.Condensed.Did, Whole: string(r.Condensed.Whole), Made: len(t.Condensed), Split: t.Cause, SplitAt: t.LeftAt,
		Charged: model.Nano(t.Charged), Saved: model.Nano(t.Saved.USD()), Times: timesOf(r),
	}
	if b := r.Bill; b != nil {
		s.Usage = account.Usage{Usage: b.Usage, Reported: b.Reported}
	}
	return s
}

// timesOf returns the parts of a request's time. Parts that were not reached are 0.
func timesOf(r *proxy.Record) account.Times {
	between := func(from, to time.Time) time.Duration {
		if from.IsZero() || to.IsZero() {
			return 0
		}
		return max(to.Sub(from), 0)
	}
	at := &r.Times
	return account.Times{
		Read: between(at.Begun, at.Read), Resolve: between(at.Read, at.Resolved), Overhead: at.Overhead, Waited: r.Turn.Waited(),
		Upstream: between(r.Call.Sent, r.Call.First), Answer: between(r.Call.First, at.Ended), Held: at.LogWait, Whole: between(at.Begun, at.Ended),
	}
}
