package sessiontest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func (s suite) budgeting() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"budget/charged":  s.budgetCharged,
		"budget/all":      s.budgetAllOrNone,
		"budget/one more": s.budgetOneMore,
		"budget/kept":     s.budgetKept,
	}
}

// charge is one of an account that is full at 100.
func charge(name string, amount, room int64) session.Charge {
	until := time.Now().Add(24 * time.Hour).Truncate(24 * time.Hour)
	return session.Charge{Account: session.Account{Tenant: "acme", Name: name, Until: until}, Limit: 100, Amount: amount, Room: room}
}

func reserve(t *testing.T, store session.Store, id string, charges ...session.Charge) session.Reserved {
	t.Helper()
	got, err := store.Reserve(ctx(t), id, charges)
	ok(t, err)
	return got
}

func balance(spent, held int64) session.Reserved {
	return session.Reserved{Balances: []session.Balance{{Spent: spent, Held: held}}}
}

func (s suite) budgetCharged(t *testing.T) {
	store := s.fresh(t)
	other := s.replica(t, store)
	equal(t, reserve(t, store, "a", charge("x", 10, 20)), balance(0, 0))
	equal(t, reserve(t, other, "", charge("x", 10, 20)), balance(10, 20))
	equal(t, reserve(t, store, "a", charge("x", 10, 20)), balance(10, 20)) // sent once more: nothing changes
	equal(t, reserve(t, store, "b", charge("x", 30, 50)), balance(10, 20))
	full := balance(40, 70)
	full.Full = true
	equal(t, reserve(t, other, "c", charge("x", 1, 1)), full)
	equal(t, reserve(t, other, "b", charge("x", 30, 50)), balance(40, 70)) // it is in already
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

func (s suite) budgetAllOrNone(t *testing.T) {
	store := s.fresh(t)
	reserve(t, store, "a", charge("x", 100, 0))
	got := reserve(t, store, "b", charge("y", 10, 10), charge("x", 1, 1))
	equal(t, got, session.Reserved{Full: true, Balances: []session.Balance{{}, {Spent: 100}}})
	equal(t, reserve(t, store, "", charge("y", 0, 0)), balance(0, 0))
	other := charge("x", 1, 1)
	other.Tenant = "globex"
	equal(t, reserve(t, store, "c", other), balance(0, 0))
}

// budgetOneMore: however many come at once, no more than one goes beyond the limit.
func (s suite) budgetOneMore(t *testing.T) {
	store := s.fresh(t)
	other := s.replica(t, store)
	var wg sync.WaitGroup
	var in atomic.Int32
	for i := range 32 {
		st := store
		if i%2 == 0 {
			st = other
		}
		wg.Go(func() {
			got, err := st.Reserve(ctx(t), fmt.Sprint("r", i), []session.Charge{charge("x", 3, 9)})
			if err != nil {
				t.Error(err)
			} else if !got.Full {
				in.Add(1)
			}
		})
	}
	wg.Wait()
	equal(t, in.Load(), 9)
}

// budgetKept: what was spent outlives the process.
func (s suite) budgetKept(t *testing.T) {
	store := s.open(t)
	reserve(t, store, "a", charge("x", 10, 0))
	ok(t, store.Settle(ctx(t), "a", []session.Charge{charge("x", 7, 0)}))
	store = s.hooks.Reopen(t, store)
	defer func() { ok(t, store.Close()) }()
	equal(t, reserve(t, store, "", charge("x", 0, 0)), balance(17, 0))
}
