package proxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// shrink condenses while something is due, a bounded number of times. It never fails: where it can not, the view stays
// as it was.
func (s *Server) shrink(t *turn) {
	if t.wish == "off" || s.settled(t) {
		return
	}
	again := t.place.Again || t.place.Match == session.MatchReplay
	for made := 0; ; {
		in := s.input(t)
		if t.purpose == session.PurposeCompaction && !overWindow(in) {
			return // the agent is making its own summary: it must see what it summarises
		}
		decision := t.tenant.Condenser.Condense(in)
		if t.tenant.Observe {
			s.observed(t, decision)
			return
		}
		if shapes(in, decision) {
			t.show(*decision.View)
		}
		if again && t.wish != "now" {
			return // what was forwarded once is forwarded again
		}
		if decision.Job == nil || made == s.o.Condenses || !s.make(t, decision.Job) {
			return
		}
		if decision.Job.Need().Reason != session.ReasonArrival {
			made++ // what is cut on arrival is cut once, and does not count
		}
	}
}

// shapes reports whether a condenser's view is to be shown. A view takes the sealed reasoning away, so it waits for the end of a
// tool loop that needs it, unless the window is in danger.
func shapes(in condense.Input, d condense.Decision) bool {
	return d.View != nil && (!in.Waits() || overWindow(in))
}

// observed reports what a tenant that only observes would have had done.
func (s *Server) observed(t *turn, decision condense.Decision) {
	if decision.Job != nil {
		t.due = decision.Job.Need().Reason
		s.o.Metrics.observed(t.tenant.Name, t.tenant.Condenser.Name(), t.due)
	}
}

func overWindow(in condense.Input) bool { return in.Window > 0 && in.Total+in.Reserved > in.Window }

// make carries out a condensation under its thread's lock, logs it and projects again. It reports whether another one
// may follow.
func (s *Server) make(t *turn, job condense.Job) bool {
	ctx, cancel := context.WithTimeout(t.ctx, s.o.Limits.Condense)
	defer cancel()
	ctx, over := t.seen.condense(ctx, job)
	defer over()
	unlock, err := s.claim(ctx, t)
	for errors.Is(err, session.ErrLocked) && t.need.Hard && s.pause(ctx) {
		unlock, err = s.claim(ctx, t) // upstream has refused the request: another's condensation is worth the wait
	}
	if err != nil {
		s.condenseFailed(t, job.Need(), err)
		return false
	}
	defer unlock()
	if changed, err := s.overtaken(ctx, t); err != nil || changed {
		return err == nil
	}
	result, err := job.Run(ctx)
	s.cooled(t, result, err)
	if err != nil {
		s.condenseFailed(t, job.Need(), err)
		return false
	}
	return s.log(ctx, t, result)
}

// claim logs what is new and takes the thread's lock.
func (s *Server) claim(ctx context.Context, t *turn) (unlock func(), err error) {
	tally := t.counted().tally
	ctx, cancel := context.WithTimeout(ctx, s.o.Limits.Store)
	defer cancel()
	if err := t.registry.Append(ctx, &t.place, &tally); err != nil {
		return nil, fmt.Errorf("claim thread: %w", err)
	}
	if unlock, err = t.store.Lock(ctx, t.place.Thread.ID, s.o.Limits.CondenseLease); err != nil {
		return nil, fmt.Errorf("claim thread: %w", err)
	}
	return unlock, nil
}

// pause waits a moment, and reports whether there is any time left.
func (s *Server) pause(ctx context.Context) bool {
	wait := time.NewTimer(lockPause)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// lockPause is how often a request that must be condensed asks for its thread's lock.
const lockPause = 100 * time.Millisecond

// overtaken reports whether somebody else condensed the thread since it was resolved; the view is then theirs.
func (s *Server) overtaken(ctx context.Context, t *turn) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Limits.Store)
	defer cancel()
	before := len(t.place.Thread.Condensations)
	if err := t.registry.Refresh(ctx, &t.place); err != nil {
		return false, err
	}
	if len(t.place.Thread.Condensations) == before {
		return false, nil
	}
	applied, err := t.registry.Condensations(ctx, &t.place)
	if err != nil {
		return false, err
	}
	t.applied = applied
	t.project()
	return true, nil
}

// durable is how many times as long as for a read is waited for a condensation to be written: it was paid for.
const durable = 5

// log writes a condensation and projects the view with it.
func (s *Server) log(ctx context.Context, t *turn, result condense.Result) bool {
	ctx, cancel := context.WithTimeout(ctx, durable*s.o.Limits.Store)
	defer cancel()
	c, err := t.registry.Condense(ctx, &t.place, &t.view, s.measured(t, result.Condensation))
	if err != nil {
		s.condenseFailed(t, condense.Need{Reason: result.Condensation.Reason}, err)
		return false
	}
	t.applied = append(t.applied, c)
	t.project()
	t.report = append(t.report, condensed{
		Reason: c.Reason, Events: c.Before.Events - c.After.Events, Tokens: c.Before.Tokens - c.After.Tokens,
		Before: c.Before.Tokens, After: c.After.Tokens,
	})
	s.o.Metrics.condensed(t.tenant.Name, t.tenant.Condenser.Name(), c, result.Fallback)
	return true
}
