package sessiontest

import (
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
