package engine_test

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// overtaking calls meanwhile at the end of each job.
type overtaking struct {
	condense.Condenser
	meanwhile func()
}

func (c overtaking) Condense(in condense.Input) condense.Decision {
	d := c.Condenser.Condense(in)
	if d.Job != nil {
		d.Job = overtakenJob{d.Job, c.meanwhile}
	}
	return d
}

type overtakenJob struct {
	condense.Job
	meanwhile func()
}

func (j overtakenJob) Run(ctx context.Context) (condense.Result, error) {
	result, err := j.Job.Run(ctx)
	j.meanwhile()
	return result, err
}

// overtakes has meanwhile run, with the tenant's own condenser, at the end of each job. It returns the number of jobs.
func (r *rig) overtakes(meanwhile func()) *int {
	runs, condenser := new(int), r.tenant.Condenser
	var other condense.Condenser
	other = overtaking{condenser, func() {
		*runs++
		r.tenant.Condenser = condenser
		meanwhile()
		r.tenant.Condenser = other
	}}
	r.tenant.Condenser = other
	return runs
}

// TestRequestsThatRaceForwardTheCondensationLoggedFirst: of two requests that condense a thread at once and do not wait, one logs its condensation, and both forward
// it. A request that loses may make another condensation if it needs one, but does not try forever.
func TestRequestsThatRaceForwardTheCondensationLoggedFirst(t *testing.T) {
	r, summariser := hurrying(t)
	close(summariser.free)
	r.window = 1500
	r.logged(r.begin(says(9), engine.WishNone))
	other := r.replica()
	other.window = r.window
	loser, winner := r.begin(says(23), engine.WishNone), other.begin(says(23), engine.WishNone)
	runs := r.overtakes(func() { other.standsIn(winner) })
	report := loser.Condense(t.Context())
	if len(report.Attempts) > 0 || report.Overall() != engine.Done || *runs != 1 {
		t.Errorf("%+v after %d runs", report, *runs)
	}
	if got := forwarded(loser); !bytes.Equal(got, forwarded(winner)) || loser.Sent().Tokens > r.window {
		t.Errorf("the winner forwards %d bytes, the loser %d", len(forwarded(winner)), len(got))
	}
}

// TestLosingRequestCondensesAgainIfTheViewIsTooLong: if the winner's view is still too long, the loser makes another condensation, but it does not try forever.
func TestLosingRequestCondensesAgainIfTheViewIsTooLong(t *testing.T) {
	for _, losses := range []int{1, 5} {
		r, _ := hurrying(t)
		r.tenant.Ahead = false
		r.logged(r.begin(says(9), engine.WishNone))
		var shorter []*request
		for n := range losses {
			shorter = append(shorter, r.begin(says(23+20*n), engine.WishNone))
		}
		loser := r.begin(says(181), engine.WishNone)
		runs := r.overtakes(func() {
			if len(shorter) > 0 {
				r.standsIn(shorter[0])
				shorter = shorter[1:]
			}
		})
		report := loser.Condense(t.Context())
		if made := len(report.Attempts) == 1 && report.Attempts[0].Made != nil; *runs != 2 || made != (losses == 1) {
			t.Errorf("%d losses: %+v after %d runs", losses, report, *runs)
		}
	}
}

// slowWrite is a store that calls meanwhile once, before it logs a condensation.
type slowWrite struct {
	session.Store
	begun     atomic.Bool
	meanwhile func()
}

func (s *slowWrite) Condense(ctx context.Context, id session.ThreadID, c session.Condensation) (session.Condensation, error) {
	if !s.begun.Swap(true) {
		s.meanwhile()
	}
	return s.Store.Condense(ctx, id, c)
}

// TestACondensationIsLoggedOnce: two requests that do not wait do not both log a condensation of the same messages, nor count twice what it
// redeems.
func TestACondensationIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := hurrying(t)
		var reports [2]engine.Report
		var turns [2]*request
		var both sync.WaitGroup
		condensed := func(i int) { both.Go(func() { reports[i] = turns[i].Condense(t.Context()) }) }
		r.tenant.Ahead = false
		r.store = &slowWrite{Store: r.store, meanwhile: func() {
			condensed(1)
			synctest.Wait()
		}}
		r.start()
		r.logged(r.begin(says(9), engine.WishNone))
		turns = [2]*request{r.begin(says(23), engine.WishNone), r.begin(says(25), engine.WishNone)}
		condensed(0)
		both.Wait()
		thread, err := r.store.Thread(t.Context(), turns[0].Place().Thread.ID)
		must(t, err)
		if made := len(reports[0].Attempts) + len(reports[1].Attempts); len(thread.Condensations) != 1 || made != 1 {
			t.Errorf("%d condensations are logged: %+v", len(thread.Condensations), reports)
		}
	})
}

// TestRepeatedRequestShowsTheCondensationUnderWay: a request that repeats one that is being condensed without a model shows the result.
func TestRepeatedRequestShowsTheCondensationUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := hurrying(t)
		r.tenant.Ahead = false
		r.logged(r.begin(says(9), engine.WishNone))
		first := r.begin(says(23), engine.WishNone)
		var second *request
		var both sync.WaitGroup
		r.overtakes(func() {
			second = r.begin(says(23), engine.WishNone)
			both.Go(func() { second.Condense(t.Context()) })
			synctest.Wait()
		})
		both.Go(func() { r.standsIn(first) })
		both.Wait()
		if !bytes.Equal(forwarded(first), forwarded(second)) {
			t.Errorf("one forwards %d bytes, the other %d", len(forwarded(first)), len(forwarded(second)))
		}
	})
}

// TestARepeatThatDoesNotFitIsCondensed: a history that the log already has is condensed if it exceeds the window and need not wait.
func TestARepeatThatDoesNotFitIsCondensed(t *testing.T) {
	r, _ := hurrying(t)
	r.tenant.Ahead, r.window = false, 1500
	r.logged(r.begin(says(25), engine.WishNone))
	r.standsIn(r.begin(says(23), engine.WishNone))
}
