package summaries_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dewpoint-proxy/dewpoint/engine/summaries"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestComputeIsBounded: condensations use at most half of the processors at a time, and one that waits gives up with its context.
func TestComputeIsBounded(t *testing.T) {
	s := summaries.New[int](time.Now)
	places := max(runtime.GOMAXPROCS(0)/2, 1)
	begun, end := make(chan struct{}), make(chan struct{})
	var running sync.WaitGroup
	for range places {
		running.Go(func() {
			if err := s.Compute(t.Context(), func() { begun <- struct{}{}; <-end }); err != nil {
				t.Error(err)
			}
		})
	}
	for range places {
		<-begun
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Compute(ctx, func() { t.Error("one too many") }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(end)
	running.Wait()
	func() { // a panic releases its place
		defer func() { _ = recover() }()
		_ = s.Compute(t.Context(), func() { panic("no") })
	}()
	for range places + 1 {
		if err := s.Compute(t.Context(), func() {}); err != nil {
			t.Error(err)
		}
	}
}

// TestTakeWaitsForACommit: a request goes on either without a commit or with all of it, and takes the result once the task has finished.
func TestTakeWaitsForACommit(t *testing.T) {
	s := summaries.New[int](time.Now)
	committing, commit, finish := make(chan struct{}), make(chan struct{}), make(chan struct{})
	late := make(chan [2]int, 1)
	p, err := s.Start(t.Context(), summaries.Task{Thread: "t", Owner: "a"}, summaries.Work[int]{
		Make: func(_ context.Context, p *summaries.Pending[int]) int {
			p.Commit(func(bool) (int, bool) { close(committing); <-commit; return 1, true })
			p.Commit(func(bool) (int, bool) { return 7, false }) // changes nothing
			<-finish
			p.Commit(func(left bool) (int, bool) {
				if !left {
					t.Error("the task does not know that the request has left")
				}
				return 2, true
			})
			return 3
		},
		Late: func(taken, result int) { late <- [2]int{taken, result} },
	})
	if err != nil {
		t.Fatal(err)
	}
	<-committing
	if p.Wait(t.Context(), 0) || s.Find("t") != p {
		t.Error("the task is over")
	}
	time.AfterFunc(0, func() { close(commit) })
	if got, finished := p.Take(); got > 1 || finished {
		t.Errorf("took %d, finished %t", got, finished)
	}
	close(finish)
	if got := <-late; got[0] > 1 || got[1] != 3 {
		t.Errorf("taken and result are %v", got)
	}
	if !p.Wait(t.Context(), time.Hour) || s.Find("t") != nil {
		t.Error("the task is not over")
	}
	if got, finished := p.Take(); got != 3 || !finished {
		t.Errorf("took %d, finished %t", got, finished)
	}
}

// TestAPanicEndsTheTask: a task that panics keeps what it has committed, and the next one for its thread can start.
func TestAPanicEndsTheTask(t *testing.T) {
	s := summaries.New[string](time.Now)
	task := summaries.Task{Thread: "t", Owner: "a"}
	p, err := s.Start(t.Context(), task, summaries.Work[string]{
		Make: func(_ context.Context, p *summaries.Pending[string]) string {
			p.Commit(func(bool) (string, bool) { return "committed", true })
			panic("no")
		},
		Panicked: func(so string, value any) string { return fmt.Sprint(so, ", then ", value) },
	})
	if err != nil || !p.Wait(t.Context(), time.Hour) {
		t.Fatal(err)
	}
	if got, finished := p.Take(); got != "committed, then no" || !finished {
		t.Errorf("took %q, finished %t", got, finished)
	}
	if _, err := s.Start(t.Context(), task, summaries.Work[string]{Make: func(context.Context, *summaries.Pending[string]) string { return "" }}); err != nil {
		t.Error(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.Start(t.Context(), task, summaries.Work[string]{}); !errors.Is(err, summaries.ErrCrowded) {
		t.Errorf("a closed service starts a task: %v", err)
	}
}

// TestTasksAreLimitedByOwner: one owner cannot take the places of all.
func TestTasksAreLimitedByOwner(t *testing.T) {
	s := summaries.New[int](time.Now)
	end := make(chan struct{})
	start := func(owner string) error {
		_, err := s.Start(t.Context(), summaries.Task{Thread: session.ThreadID(owner), Owner: owner}, summaries.Work[int]{
			Make: func(context.Context, *summaries.Pending[int]) int { <-end; return 0 },
		})
		return err
	}
	started := 0
	for start("a") == nil {
		started++
	}
	if started != 64 {
		t.Errorf("%d tasks of one owner run at once", started)
	}
	if err := start("b"); err != nil {
		t.Error(err)
	}
	close(end)
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCloseWaitsForDone: what a task holds is given back before Close returns.
func TestCloseWaitsForDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, released := summaries.New[int](time.Now), false
		_, err := s.Start(t.Context(), summaries.Task{Thread: "t", Owner: "a"}, summaries.Work[int]{
			Make: func(context.Context, *summaries.Pending[int]) int { return 0 },
			Done: func() {
				time.Sleep(time.Second)
				released = true
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(t.Context()); err != nil || !released {
			t.Errorf("closed before the task has released what it holds: %v", err)
		}
	})
}

// TestAfter: what waits for the end of a prepared summary is replaced by what comes later, and runs once the task is gone.
func TestAfter(t *testing.T) {
	s := summaries.New[int](time.Now)
	if s.After("t", func(bool) { t.Error("called") }) {
		t.Error("there is nothing to wait for")
	}
	end := make(chan struct{})
	_, err := s.Start(t.Context(), summaries.Task{Thread: "t", Owner: "a", Ahead: true}, summaries.Work[int]{
		Make: func(context.Context, *summaries.Pending[int]) int { <-end; return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	dropped, ran := make(chan bool, 1), make(chan bool, 1)
	if !s.After("t", func(run bool) { dropped <- run }) || !s.After("t", func(run bool) { ran <- run }) {
		t.Error("the task is not found")
	}
	if <-dropped {
		t.Error("what was replaced ran")
	}
	close(end)
	if !<-ran || s.Find("t") != nil {
		t.Error("what waited did not run, or before the end of the task")
	}
}

// TestPause: after a failure of the store one call is admitted, and then none until the pause is over or something was kept.
func TestPause(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s := summaries.New[int](func() time.Time { return now })
	if s.Paused() || !s.MayAsk() || !s.MayAsk() {
		t.Error("models may be called at first")
	}
	s.NoteWrite(fmt.Errorf("write: %w", session.ErrUnavailable))
	if !s.Paused() || s.MayAsk() {
		t.Error("models may be called while the store keeps nothing")
	}
	now = now.Add(6 * time.Minute)
	if s.Paused() || !s.MayAsk() || s.MayAsk() {
		t.Error("after the pause, one call is tried")
	}
	if s.NoteWrite(nil); s.Paused() || !s.MayAsk() {
		t.Error("models may be called once the store keeps something")
	}
}
