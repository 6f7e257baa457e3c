package sessiontest

import (
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Hooks are what the suite cannot do by itself.
type Hooks struct {
	// Reopen closes s and opens another store over the same state. Required.
	Reopen func(t *testing.T, s session.Store) session.Store
	// Replica opens another store over the state of s, which stays open. Nil where only one can be.
	Replica func(t *testing.T, s session.Store) session.Store
	// WithoutContent opens a store over an empty state that keeps no content. Required.
	WithoutContent func(t *testing.T) session.Store
	// Dump gives everything that the store keeps, by key. Required of an Archive; other stores are not tested as one.
	Dump func(t *testing.T, s session.Store) map[string]string
	// Pass lets time pass for the store. Nil where its clock is the real one.
	Pass func(d time.Duration)
}

// Run drives every method of the stores that open gives. Each is over an empty state, keeps content, and is closed by
// the suite.
func Run(t *testing.T, open func(t *testing.T) session.Store, hooks Hooks) {
	all := reflect.ValueOf(suite{open: open, hooks: hooks})
	for i := range all.NumMethod() {
		name := all.Type().Method(i).Name
		if strings.HasPrefix(name, "Archive") && hooks.Dump == nil {
			continue
		}
		t.Run(name, all.Method(i).Interface().(func(*testing.T)))
	}
}

// suite has the tests: each exported method is one. Those of an Archive are named for it.
type suite struct {
	open  func(t *testing.T) session.Store
	hooks Hooks
}

// fresh opens a store that is closed with the test.
func (s suite) fresh(t *testing.T) session.Store {
	t.Helper()
	store := s.open(t)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return store
}

// replica is another process's store over the same state, or, where there can be only one, the same store.
func (s suite) replica(t *testing.T, store session.Store) session.Store {
	t.Helper()
	if s.hooks.Replica == nil {
		return store
	}
	other := s.hooks.Replica(t, store)
	t.Cleanup(func() { _ = other.Close() })
	return other
}

// pair is a fresh store and a replica of it.
func (s suite) pair(t *testing.T) (store, other session.Store) {
	t.Helper()
	store = s.fresh(t)
	return store, s.replica(t, store)
}

// reopen is a restart. The store is closed with the test.
func (s suite) reopen(t *testing.T, store session.Store) session.Store {
	t.Helper()
	store = s.hooks.Reopen(t, store)
	t.Cleanup(func() { ok(t, store.Close()) })
	return store
}

// together makes n calls at once, which take turns with the stores.
func together(t *testing.T, n int, call func(i int, store session.Store) error, stores ...session.Store) {
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
