package sessiontest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func (s suite) racing() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"race/one append wins":     s.oneAppendWins,
		"race/condense and append": s.condenseAndAppend,
		"race/one secret":          s.oneSecret,
		"race/one session":         s.oneSession,
	}
}

// oneAppendWins: of many that append at the same position exactly one does, and the log holds what the winners wrote.
func (s suite) oneAppendWins(t *testing.T) {
	const writers, rounds = 8, 20
	store := s.fresh(t)
	other := s.replica(t, store)
	for at := range rounds {
		var wg sync.WaitGroup
		var winner atomic.Int32
		for i := range writers {
			b := batch("t", at, 1)
			b.Events[0].Tokens = i + 1
			st := []session.Store{store, other}[i%2]
			wg.Go(func() {
				err := st.Append(ctx(t), b)
				switch {
				case err == nil && !winner.CompareAndSwap(0, int32(i+1)):
					t.Errorf("two appends at %d", at)
				case err != nil && !errors.Is(err, session.ErrStale):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		last, err := store.Events(ctx(t), "t", uint64(at+1), 2)
		ok(t, err)
		equal(t, len(last), 1)
		equal(t, last[0].Tokens, int(winner.Load()))
	}
	equal(t, thread(t, store, "t").Seq, rounds)
}

func (s suite) condenseAndAppend(t *testing.T) {
	const condensers, each, appends = 4, 5, 20
	store := s.fresh(t)
	other := s.replica(t, store)
	ok(t, store.Append(ctx(t), batch("t", 0, 1)))
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := map[uint64]session.Condensation{}
	for i := range condensers {
		wg.Go(func() {
			for j := range each {
				c, err := []session.Store{store, other}[i%2].Condense(ctx(t), "t", condensation(100*i+j+10))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				made[c.ID.Seq] = listed(c)
				mu.Unlock()
			}
		})
	}
	wg.Go(func() {
		for at := 1; at <= appends; at++ {
			if err := other.Append(ctx(t), batch("t", at, 1)); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	got := thread(t, store, "t")
	equal(t, got.Seq, 1+appends+condensers*each)
	equal(t, len(got.Condensations), condensers*each)
	for _, c := range got.Condensations {
		equal(t, c, made[c.ID.Seq])
		ok(t, second(other.Summary(ctx(t), c.ID)))
	}
	log := events(t, store, "t")
	log = slices.DeleteFunc(log, func(e session.Event) bool { return (e.Kind == session.Condensed) == (made[e.Seq].Prefix == 0) })
	equal(t, len(log), int(got.Seq))
}

func (s suite) oneSecret(t *testing.T) {
	store := s.fresh(t)
	other := s.replica(t, store)
	got := make([]session.Secret, 8)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = []session.Store{store, other}[i%2].Secret(ctx(t), session.Secret(fmt.Sprint("secret", i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, secret := range got {
		equal(t, secret, got[0])
	}
}

func (s suite) oneSession(t *testing.T) {
	const n = 16
	store := s.fresh(t)
	other := s.replica(t, store)
	var wg sync.WaitGroup
	for i := range n {
		b := batch(session.ThreadID(fmt.Sprint("t", i)), 0, 1)
		b.Thread.Session = "ses"
		wg.Go(func() {
			if err := []session.Store{store, other}[i%2].Append(ctx(t), b); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ses := sessionAt(t, store, "ses")
	slices.Sort(ses.Threads)
	equal(t, len(slices.Compact(ses.Threads)), n)
}
