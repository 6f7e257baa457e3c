package sessiontest

import (
	"sync"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func (s suite) experimenting() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"experiment/sums":     s.experimentSums,
		"experiment/since":    s.experimentSince,
		"experiment/at once":  s.experimentAtOnce,
		"experiment/reopened": s.experimentReopened,
	}
}

func (s suite) experimentSums(t *testing.T) {
	store := s.fresh(t)
	began := time.UnixMilli(1_700_000_000_000)
	var want session.Experiment
	none, err := store.Experiment(ctx(t), "a")
	ok(t, err)
	equal(t, none, want)
	want.Since = began
	for i, seat := range []session.Seat{{}, {Arm: session.HeldOut, Group: session.Groups - 1}, {}, {Group: 7}} {
		more := session.Sums{Sessions: 1, Steps: int64(i), Unpriced: 2, Nano: 1 << 40}
		ok(t, store.Enter(ctx(t), session.Entry{Experiment: "a", Seat: seat, Begun: began, Sums: more}))
		want.Arms[seat.Arm][seat.Group].Add(more)
	}
	ok(t, store.Enter(ctx(t), session.Entry{Experiment: "b", Begun: began, Sums: session.Sums{Sessions: 1, Nano: 5}}))
	got, err := s.replica(t, store).Experiment(ctx(t), "a")
	ok(t, err)
	equal(t, got, want)
}

// experimentSince: what had begun before the experiment is left out.
func (s suite) experimentSince(t *testing.T) {
	store := s.fresh(t)
	old := time.Now().Add(-time.Hour)
	charge := func(began time.Time, sessions int64) session.Experiment {
		ok(t, store.Enter(ctx(t), session.Entry{Experiment: "a", Begun: began, Sums: session.Sums{Sessions: sessions, Steps: 1}}))
		a, err := store.Experiment(ctx(t), "a")
		ok(t, err)
		return a
	}
	a := charge(old, 0)
	if a.Arms != (session.Experiment{}).Arms || time.Since(a.Since) > time.Minute {
		t.Errorf("a session that was under way began the experiment: %+v", a)
	}
	equal(t, charge(old, 0), a)
	equal(t, charge(a.Since.Add(time.Second), 1).Arms[0][0], session.Sums{Sessions: 1, Steps: 1})
}

func (s suite) experimentAtOnce(t *testing.T) {
	store := s.fresh(t)
	other := s.replica(t, store)
	var work sync.WaitGroup
	for range 40 {
		for _, replica := range []session.Store{store, other} {
			work.Go(func() {
				ok(t, replica.Enter(ctx(t), session.Entry{Experiment: "a", Begun: time.UnixMilli(1), Sums: session.Sums{Sessions: 1, Nano: 3}}))
			})
		}
	}
	work.Wait()
	a, err := store.Experiment(ctx(t), "a")
	ok(t, err)
	equal(t, a.Arms[0][0], session.Sums{Sessions: 80, Nano: 240})
}

func (s suite) experimentReopened(t *testing.T) {
	store := s.open(t)
	ok(t, store.Enter(ctx(t), session.Entry{Experiment: "a", Begun: time.UnixMilli(1), Sums: session.Sums{Sessions: 1}}))
	store = s.hooks.Reopen(t, store)
	defer func() { ok(t, store.Close()) }()
	a, err := store.Experiment(ctx(t), "a")
	ok(t, err)
	equal(t, a.Arms[0][0].Sessions, int64(1))
}
