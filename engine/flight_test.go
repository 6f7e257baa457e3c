package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// held is a summariser that answers when the test lets it.
type held struct{ asked, free chan struct{} }

func (h held) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	h.asked <- struct{}{}
	<-h.free
	limit.Bill(ctx, limit.Call{Model: r.Model, Input: 100, Output: 5, USD: 0.002, Known: true})
	return condense.Reply{Text: "DISCUSSED: the sea.", Finish: "stop"}, nil
}

// noticed is a context that signals when it is first waited for.
type noticed struct {
	context.Context
	once   *sync.Once
	waited chan struct{}
}

func (n noticed) Done() <-chan struct{} {
	n.once.Do(func() { close(n.waited) })
	return n.Context.Done()
}

// stalling is a store that fails to log condensations, and records the time that it was given.
type stalling struct {
	session.Store
	left chan time.Duration // receives the time given to each call
}

func (s stalling) Condense(ctx context.Context, _ session.ThreadID, c session.Condensation) (session.Condensation, error) {
	until, _ := ctx.Deadline()
	s.left <- time.Until(until)
	return c, session.ErrUnavailable
}

// TestAWriteDoesNotOutlastTheDeadline: a request waits for the write of its condensation at most one read beyond its deadline.
func TestAWriteDoesNotOutlastTheDeadline(t *testing.T) {
	r := newRig(t, rolling())
	store := stalling{r.store, make(chan time.Duration, 1)}
	var err error
	r.engine, err = engine.New(engine.Options{
		Sessions: sessions{store}, Tokens: &calibrated{}, Now: func() time.Time { return r.clock },
		Limits: engine.Limits{Store: time.Hour, CondenseLease: time.Hour},
	})
	must(t, err)
	r.settings = r.engine.Swap(*r.settings)
	r.tenant.Deadline, r.tenant.CondenseTimeout = time.Hour, time.Hour
	turn := r.begin(says(21), engine.WishNone)
	if report := turn.Condense(t.Context()); len(report.Attempts) != 1 || report.Attempts[0].Made != nil {
		t.Errorf("%+v", report)
	}
	if left := <-store.left; left > 2*time.Hour || left < time.Hour {
		t.Errorf("the write may take %s", left)
	}
}

// TestIdenticalFirstRequests: of two requests that begin the same new thread at once, one condenses, and both show the result.
func TestIdenticalFirstRequests(t *testing.T) {
	summariser := held{asked: make(chan struct{}), free: make(chan struct{})}
	r := newRig(t, condense.NewLLM(condense.LLMSettings{
		Settings: condense.Settings{MaxSize: 10, KeepFirst: 1}, Summariser: summariser, Model: "cheap",
	}))
	for _, n := range []int{7, 9} { // the second answer is in the forks, which proves that they are forks
		asked := r.begin(says(n), engine.WishNone)
		r.logged(asked)
		must(t, asked.Answered(dialect.Answer{Text: fmt.Sprintf("%d: %s", n, strings.Repeat("The sea is deep. ", 20))}, nil)(t.Context()))
	}
	fork := func() *body {
		return &body{bytes: bytes.Replace(says(13).bytes, []byte("8: The sea"), []byte("8: The lake"), 1)}
	}
	first, second := r.begin(fork(), engine.WishNone), r.begin(fork(), engine.WishNone)
	if !first.Place().New || !second.Place().New || first.Place().Thread.ID != second.Place().Thread.ID {
		t.Fatalf("%+v and %+v do not begin one thread", first.Place().Thread, second.Place().Thread)
	}
	var both sync.WaitGroup
	both.Go(func() { first.Condense(t.Context()) })
	<-summariser.asked
	waits := noticed{t.Context(), &sync.Once{}, make(chan struct{})}
	both.Go(func() { second.Condense(waits) })
	<-waits.waited
	close(summariser.free)
	both.Wait()
	if got := forwarded(second); bytes.Equal(got, fork().bytes) || !bytes.Equal(got, forwarded(first)) {
		t.Errorf("one forwards %d bytes, the other %d", len(forwarded(first)), len(got))
	}
}

// thenLate condenses once, and then again with a call that is billed before and after the request's deadline.
type thenLate struct {
	condense.Condenser
	first condense.Job
	over  chan struct{} // closed after the deadline
}

func (c *thenLate) Condense(in condense.Input) condense.Decision {
	if d := c.Condenser.Condense(in); d.Job != nil {
		c.first = d.Job
		return d
	}
	return condense.Decision{Job: lateJob{c.first, c.over}}
}

type lateJob struct {
	condense.Job
	over chan struct{}
}

func (j lateJob) Run(ctx context.Context) (condense.Result, error) {
	limit.Bill(ctx, limit.Call{Model: "cheap", USD: 0.002, Known: true})
	<-j.over
	limit.Bill(ctx, limit.Call{Model: "cheap", USD: 0.002, Known: true})
	return condense.Result{}, errors.New("no summary came")
}

// TestCallAfterTheDeadlineIsBilled: a call is billed without a race while the request goes on with the earlier condensation.
func TestCallAfterTheDeadlineIsBilled(t *testing.T) {
	over := make(chan struct{})
	r := newRig(t, &thenLate{Condenser: rolling(), over: over})
	r.clock, r.tenant.Deadline, r.tenant.Holdout.Share = time.Time{}, time.Second, 1e-12 // no session is held out
	asked := says(21)
	turn := r.begin(asked, engine.WishNone)
	if report := turn.Condense(t.Context()); len(report.Attempts) != 2 || report.Attempts[0].Made == nil || !errors.Is(report.Attempts[1].Err, engine.ErrDeadline) {
		t.Errorf("%+v", report)
	}
	close(over)
	asked.work.Wait()
	if spent, err := r.engine.Experiment(t.Context(), "a", session.Holdout{Share: 1e-12}); err != nil || spent == (session.Experiment{}) {
		t.Errorf("entered %+v, %v", spent, err)
	}
}

// TestAnAttemptIsReportedOnce: what is reported after a request went on leaves out what the request reported itself.
func TestAnAttemptIsReportedOnce(t *testing.T) {
	over := make(chan struct{})
	r := newRig(t, &thenLate{Condenser: rolling(), over: over})
	r.clock, r.tenant.Deadline = time.Time{}, time.Second
	var late []engine.Attempt
	r.late = func(report engine.Report) { late = append(late, report.Attempts...) }
	asked := says(21)
	report := r.begin(asked, engine.WishNone).Condense(t.Context())
	close(over)
	asked.work.Wait()
	if len(report.Attempts) != 2 || report.Attempts[0].Made == nil || !errors.Is(report.Attempts[1].Err, engine.ErrDeadline) {
		t.Fatalf("the request reports %+v", report.Attempts)
	}
	if len(late) != 1 || late[0].Made != nil || late[0].Err == nil || errors.Is(late[0].Err, engine.ErrDeadline) {
		t.Errorf("reported later: %+v", late)
	}
}

// insatiable hides two events more, however short the view is.
type insatiable struct{ calls int }

func (*insatiable) Name() string { return "insatiable" }

func (c *insatiable) Condense(in condense.Input) condense.Decision {
	if c.calls++; c.calls > 5 {
		return condense.Decision{}
	}
	return condense.AmortizedForgetting{Settings: condense.Settings{MaxSize: len(in.View.Items) - 1, KeepFirst: 1}}.Condense(in)
}

// TestTwoCondensationsOfARequest: one request causes two condensations at most, whatever the condenser still wants.
func TestTwoCondensationsOfARequest(t *testing.T) {
	r := newRig(t, &insatiable{})
	report := r.begin(says(121), engine.WishNone).Condense(t.Context())
	if n := len(report.Attempts); n != 2 {
		t.Errorf("%d condensations", n)
	}
}
