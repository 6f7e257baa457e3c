package sessiontest

import (
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Hooks are the operations that only the store's own package can provide.
type Hooks struct {
	// Reopen closes s and opens another store over the same state. Required.
	Reopen func(t *testing.T, s session.Backend) session.Backend
	// Replica opens another store over the state of s, which stays open. Nil if only one store can be open.
	Replica func(t *testing.T, s session.Backend) session.Backend
	// WithoutContent opens a store over an empty state that keeps no content. Required.
	WithoutContent func(t *testing.T) session.Backend
	// Dump returns everything that the store keeps, by key. If it is nil, the methods of session.Archive are not tested.
	Dump func(t *testing.T, s session.Backend) map[string]string
	// Damage makes change replace an entry of a thread's log. If it is nil, damage is not tested.
	Damage func(t *testing.T, s session.Backend, id session.ThreadID, seq uint64, change func(entry []byte) []byte)
	// Pass advances the store's clock. Nil if the store uses the real one.
	Pass func(d time.Duration)
}

// Run tests every method of the stores that open returns. Each store starts empty, keeps content, and is closed by Run.
func Run(t *testing.T, open func(t *testing.T) session.Backend, hooks Hooks) {
	all := reflect.ValueOf(suite{open: open, hooks: hooks})
	for i := range all.NumMethod() {
		name := all.Type().Method(i).Name
		if strings.HasPrefix(name, "Archive") && hooks.Dump == nil {
			continue
		}
		t.Run(name, all.Method(i).Interface().(func(*testing.T)))
	}
}

// suite holds the tests: each exported method is one. Tests of session.Archive have names that begin with Archive.
type suite struct {
	open  func(t *testing.T) session.Backend
	hooks Hooks
}

// fresh opens an empty store that is closed when the test ends.
func (s suite) fresh(t *testing.T) session.Backend {
	t.Helper()
	return closing(t, s.open(t))
}

// begun opens a store with a thread "t" of n messages.
func (s suite) begun(t *testing.T, n int) session.Backend {
	t.Helper()
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("t", 0, n)))
	return store
}

// replica returns another process's store over the same state, or store itself if only one can be open.
func (s suite) replica(t *testing.T, store session.Backend) session.Backend {
	t.Helper()
	if s.hooks.Replica == nil {
		return store
	}
	return closing(t, s.hooks.Replica(t, store))
}

// pair returns an empty store and a replica of it.
func (s suite) pair(t *testing.T) (store, other session.Backend) {
	t.Helper()
	store = s.fresh(t)
	return store, s.replica(t, store)
}

// closing closes the store when the test ends.
func closing(t *testing.T, store session.Backend) session.Backend {
	t.Cleanup(func() { ok(t, store.Close()) })
	return store
}

// together makes n concurrent calls, distributed over the stores.
func together(t *testing.T, n int, call func(i int, store session.Backend) error, stores ...session.Backend) {
	t.Helper()
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() {
			if err := call(i, stores[i%len(stores)]); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
}

// wantWinners makes n concurrent calls, of which exactly want must report that they won.
func wantWinners(t *testing.T, n, want int, call func(i int, store session.Backend) (bool, error), stores ...session.Backend) {
	t.Helper()
	var winners atomic.Int32
	together(t, n, func(i int, store session.Backend) error {
		won, err := call(i, store)
		if won {
			winners.Add(1)
		}
		return err
	}, stores...)
	equal(t, winners.Load(), int32(want))
}
