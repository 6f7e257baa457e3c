package sessiontest

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func (s suite) ExperimentSums(t *testing.T) {
	store := s.fresh(t)
	began := time.UnixMilli(1_700_000_000_000)
	equal(t, must(store.Experiment(ctx(t), "a"))(t), session.Experiment{})
	want := session.Experiment{Since: began}
	for i, seat := range []session.Seat{{}, {Arm: session.HeldOut, Group: session.Groups - 1}, {}, {Group: 7}} {
		more := session.Sums{Sessions: 1, Steps: int64(i), Unpriced: 2, Nano: 1 << 40}
		ok(t, store.Enter(ctx(t), session.Entry{Experiment: "a", Seat: seat, Begun: began, Sums: more}))
		want.Arms[seat.Arm][seat.Group].Add(more)
	}
	ok(t, store.Enter(ctx(t), session.Entry{Experiment: "b", Begun: began, Sums: session.Sums{Sessions: 1, Nano: 5}}))
	equal(t, must(s.replica(t, store).Experiment(ctx(t), "a"))(t), want)
}

// ExperimentSince: threads that began before the experiment do not count.
func (s suite) ExperimentSince(t *testing.T) {
	store := s.fresh(t)
	old := time.Now().Add(-time.Hour)
	charge := func(began time.Time, sessions int64) session.Experiment {
		ok(t, store.Enter(ctx(t), session.Entry{Experiment: "a", Begun: began, Sums: session.Sums{Sessions: sessions, Steps: 1}}))
		return must(store.Experiment(ctx(t), "a"))(t)
	}
	a := charge(old, 0)
	if a.Arms != (session.Experiment{}).Arms || time.Since(a.Since) > time.Minute {
		t.Errorf("a session from before the experiment counts: %+v", a)
	}
	equal(t, charge(old, 0), a)
	equal(t, charge(a.Since.Add(time.Second), 1).Arms[0][0], session.Sums{Sessions: 1, Steps: 1})
}

func (s suite) ExperimentAtOnce(t *testing.T) {
	store, other := s.pair(t)
	together(t, 80, func(_ int, store session.Backend) error {
		return store.Enter(ctx(t), session.Entry{Experiment: "a", Begun: time.UnixMilli(1), Sums: session.Sums{Sessions: 1, Nano: 3}})
	}, store, other)
	equal(t, must(store.Experiment(ctx(t), "a"))(t).Arms[0][0], session.Sums{Sessions: 80, Nano: 240})
}
