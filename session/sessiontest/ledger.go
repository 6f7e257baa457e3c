package sessiontest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// charge returns a charge to an account that is full at 100.
func charge(name string, amount, room int64) session.Charge {
	until := time.Now().Add(24 * time.Hour).Truncate(24 * time.Hour)
	return session.Charge{Account: session.Account{Tenant: "acme", Name: name, Until: until}, Limit: 100, Amount: amount, Room: room}
}

func reserve(t *testing.T, store session.Backend, id string, charges ...session.Charge) session.Reserved {
	t.Helper()
	return must(store.Reserve(ctx(t), id, charges))(t)
}

func balance(spent, held int64) session.Reserved {
	return session.Reserved{Balances: []session.Balance{{Spent: spent, Held: held}}}
}

func (s suite) BudgetCharged(t *testing.T) {
	store, other := s.pair(t)
	equal(t, reserve(t, store, "a", charge("x", 10, 20)), balance(0, 0))
	equal(t, reserve(t, other, "", charge("x", 10, 20)), balance(10, 20))
	equal(t, reserve(t, store, "a", charge("x", 10, 20)), balance(10, 20)) // a repetition changes nothing
	equal(t, reserve(t, store, "b", charge("x", 30, 50)), balance(10, 20))
	full := balance(40, 70)
	full.Full = true
	equal(t, reserve(t, other, "c", charge("x", 1, 1)), full)
	equal(t, reserve(t, other, "b", charge("x", 30, 50)), balance(40, 70)) // already charged
	for range 2 {
		ok(t, other.Settle(ctx(t), "b", []session.Charge{charge("x", -25, 0)}))
		equal(t, reserve(t, store, "", charge("x", 0, 0)), balance(15, 20))
	}
	ok(t, store.Settle(ctx(t), "unknown", []session.Charge{charge("x", 50, 0)}))
	ok(t, store.Settle(ctx(t), "a", []session.Charge{charge("x", 5, 0)}))
	equal(t, reserve(t, other, "", charge("x", 0, 0)), balance(20, 0))
	next := charge("x", 0, 0)
	next.Until = next.Until.Add(24 * time.Hour)
	equal(t, reserve(t, other, "", next), balance(0, 0))
}

func (s suite) BudgetAll(t *testing.T) {
	store := s.fresh(t)
	reserve(t, store, "a", charge("x", 100, 0))
	got := reserve(t, store, "b", charge("y", 10, 10), charge("x", 1, 1))
	equal(t, got, session.Reserved{Full: true, Balances: []session.Balance{{}, {Spent: 100}}})
	equal(t, reserve(t, store, "", charge("y", 0, 0)), balance(0, 0))
	other := charge("x", 1, 1)
	other.Tenant = "globex"
	equal(t, reserve(t, store, "c", other), balance(0, 0))
}

// BudgetOneMore: of concurrent charges only one goes beyond the limit.
func (s suite) BudgetOneMore(t *testing.T) {
	store, other := s.pair(t)
	wantWinners(t, 32, 9, func(i int, store session.Backend) (bool, error) {
		got, err := store.Reserve(ctx(t), fmt.Sprint("r", i), []session.Charge{charge("x", 3, 9)})
		return !got.Full, err
	}, store, other)
}

func (s suite) SavingsSums(t *testing.T) {
	store := s.begun(t, 2)
	ok(t, store.Append(ctx(t), batch("other", 0, 2)))
	equal(t, must(store.Saved(ctx(t), "t"))(t), session.Savings{})
	var want session.Savings
	for _, more := range []session.Savings{
		{Tokens: 900, NotSent: 1 << 40, Rewritten: -(1 << 39)},
		{Cost: session.Cost{Calls: 2, Took: 3 * time.Second, Used: session.Usage{Input: 1000, Cached: 10, Output: 20}, Nano: 7}},
		{Tokens: -1000, NotSent: -5, Rewritten: 3, Cost: session.Cost{Unpriced: "strange model"}},
		{Cost: session.Cost{Calls: 1, Took: time.Millisecond}},
	} {
		ok(t, store.Save(ctx(t), "t", more))
		want.Add(more)
	}
	equal(t, must(s.replica(t, store).Saved(ctx(t), "t"))(t), want)
	equal(t, must(store.Saved(ctx(t), "other"))(t), session.Savings{})
	ok(t, store.Append(ctx(t), batch("t", 2, 2)))
	ok(t, second(store.Condense(ctx(t), "t", condensation(4))))
	equal(t, must(store.Saved(ctx(t), "t"))(t), want)
}

func (s suite) ExperimentSums(t *testing.T) {
	store := s.fresh(t)
	began := time.UnixMilli(1_700_000_000_000)
	equal(t, must(store.Experiment(ctx(t), "a"))(t), session.Experiment{})
	want := session.Experiment{Since: began}
	for i, assignment := range []session.Assignment{{}, {Arm: session.HeldOut, Group: session.Groups - 1}, {}, {Group: 7}} {
		more := session.Sums{Sessions: 1, Steps: int64(i), Unpriced: 2, Errors: int64(3 * i), Nano: 1 << 40}
		ok(t, store.Enter(ctx(t), session.Entry{Experiment: "a", Assignment: assignment, Begun: began, Sums: more}))
		want.Arms[assignment.Arm][assignment.Group].Add(more)
	}
	ok(t, store.Enter(ctx(t), session.Entry{Experiment: "b", Begun: began, Sums: session.Sums{Sessions: 1, Nano: 5}}))
	equal(t, must(s.replica(t, store).Experiment(ctx(t), "a"))(t), want)
}

// ExperimentSince: sessions that began before the experiment do not count.
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

// SumsAtOnce: concurrent additions lose nothing.
func (s suite) SumsAtOnce(t *testing.T) {
	store, other := s.pair(t)
	ok(t, store.Append(ctx(t), batch("t", 0, 2)))
	together(t, 80, func(_ int, store session.Backend) error {
		entry := session.Entry{Experiment: "a", Begun: time.UnixMilli(1), Sums: session.Sums{Sessions: 1, Nano: 3}}
		return errors.Join(store.Save(ctx(t), "t", session.Savings{Tokens: 3, NotSent: -1}), store.Enter(ctx(t), entry))
	}, store, other)
	equal(t, must(store.Saved(ctx(t), "t"))(t), session.Savings{Tokens: 240, NotSent: -80})
	equal(t, must(store.Experiment(ctx(t), "a"))(t).Arms[0][0], session.Sums{Sessions: 80, Nano: 240})
}
