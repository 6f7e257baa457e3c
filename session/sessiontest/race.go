package sessiontest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// RaceOneAppendWins: of concurrent appends at the same position exactly one succeeds, and the log holds what that one wrote.
func (s suite) RaceOneAppendWins(t *testing.T) {
	const writers, rounds = 8, 20
	store, other := s.pair(t)
	for at := range rounds {
		var winner atomic.Int32
		wantWinners(t, writers, 1, func(i int, store session.Backend) (bool, error) {
			b := batch("t", at, 1)
			b.Events[0].Tokens = i + 1
			err := store.Append(ctx(t), b)
			if errors.Is(err, session.ErrStale) {
				return false, nil
			}
			winner.Store(int32(i + 1))
			return true, err
		}, store, other)
		last := must(store.Events(ctx(t), "t", uint64(at+1), 2))(t)
		equal(t, len(last), 1)
		equal(t, last[0].Tokens, int(winner.Load()))
	}
	equal(t, thread(t, store, "t").Seq, rounds)
}

func (s suite) RaceCondenseAndAppend(t *testing.T) {
	const condensations, appends = 20, 20
	store := s.begun(t, 1)
	other := s.replica(t, store)
	var mu sync.Mutex
	made := map[uint64]session.Condensation{}
	together(t, condensations+1, func(i int, store session.Backend) (err error) {
		if i == condensations {
			for at := 1; at <= appends && err == nil; at++ {
				err = other.Append(ctx(t), batch("t", at, 1))
			}
			return err
		}
		c, err := store.Condense(ctx(t), "t", condensation(i+10))
		mu.Lock()
		defer mu.Unlock()
		made[c.ID.Seq] = listed(c)
		return err
	}, store, other)
	got := thread(t, store, "t")
	equal(t, got.Seq, 1+appends+condensations)
	equal(t, len(got.Condensations), condensations)
	for _, c := range got.Condensations {
		equal(t, c, made[c.ID.Seq])
		ok(t, second(other.Summary(ctx(t), c.ID)))
	}
	log := events(t, store, "t")
	log = slices.DeleteFunc(log, func(e session.Event) bool { return (e.Kind == session.Condensed) == (made[e.Seq].Prefix == 0) })
	equal(t, len(log), int(got.Seq))
}

// RaceOneSecret: the first secret stays. An empty one is refused, because anyone could forge a chain keyed with it.
func (s suite) RaceOneSecret(t *testing.T) {
	store, other := s.pair(t)
	if _, err := store.Secret(ctx(t), nil); err == nil {
		t.Error("an empty secret was accepted")
	}
	got := make([]session.Secret, 8)
	together(t, len(got), func(i int, store session.Backend) (err error) {
		got[i], err = store.Secret(ctx(t), session.Secret(fmt.Sprint("\x00secret", i, "\xff")))
		return err
	}, store, other)
	got = append(got, must(store.Secret(ctx(t), session.Secret("later")))(t), must(other.Secret(ctx(t), session.Secret("later")))(t))
	for _, secret := range got {
		equal(t, secret, got[0])
	}
}

func (s suite) RaceOneSession(t *testing.T) {
	const n = 16
	store, other := s.pair(t)
	together(t, n, func(i int, store session.Backend) error {
		b := batch(session.ThreadID(fmt.Sprint("t", i)), 0, 1)
		b.Thread.Session = "ses"
		return store.Append(ctx(t), b)
	}, store, other)
	ses := must(store.Session(ctx(t), "ses"))(t)
	slices.Sort(ses.Threads)
	equal(t, len(slices.Compact(ses.Threads)), n)
}

const long = time.Hour

func wantLocked(t *testing.T, store session.Backend, id session.ThreadID) {
	t.Helper()
	is(t, second(store.Lock(ctx(t), id, long)), session.ErrLocked)
}

func (s suite) LockTaken(t *testing.T) {
	store, other := s.pair(t)
	former := must(store.Lock(ctx(t), "t", long))(t)
	wantLocked(t, store, "t")
	wantLocked(t, other, "t")
	ok(t, second(other.Lock(ctx(t), "another", long)))
	former.Release()
	lease := must(other.Lock(ctx(t), "t", long))(t)
	former.Release() // does not release the new lock
	wantLocked(t, store, "t")
	lease.Release()
}

// LockExpires waits for a lock to expire, in real time if the store has no other clock.
func (s suite) LockExpires(t *testing.T) {
	const short = 20 * time.Millisecond
	store := s.fresh(t)
	late := must(store.Lock(ctx(t), "t", short))(t)
	if s.hooks.Pass != nil {
		s.hooks.Pass(short)
	}
	var lease session.Lease
	Eventually(t, "the lock expires", func() (err error) {
		lease, err = store.Lock(ctx(t), "t", long)
		return err
	})
	late.Release() // does not release the new lock
	wantLocked(t, store, "t")
	lease.Release()
	must(store.Lock(ctx(t), "t", long))(t).Release()
}

func (s suite) LockOne(t *testing.T) {
	store, other := s.pair(t)
	wantWinners(t, 16, 1, func(_ int, store session.Backend) (bool, error) {
		_, err := store.Lock(ctx(t), "t", long)
		if errors.Is(err, session.ErrLocked) {
			return false, nil
		}
		return true, err
	}, store, other)
}

func (s suite) LockNoTime(t *testing.T) {
	store := s.fresh(t)
	for _, ttl := range []time.Duration{0, -time.Second} {
		if _, err := store.Lock(ctx(t), "t", ttl); err == nil || errors.Is(err, session.ErrLocked) {
			t.Errorf("a lock of %v: %v", ttl, err)
		}
	}
}

// LockRenewed: a renewed lock does not expire, and one that another caller has taken cannot be renewed.
func (s suite) LockRenewed(t *testing.T) {
	const short = 200 * time.Millisecond
	store, other := s.pair(t)
	lease := must(store.Lock(ctx(t), "t", short))(t)
	for range 20 {
		ok(t, lease.Renew(ctx(t)))
		if s.hooks.Pass != nil {
			s.hooks.Pass(short * 3 / 4)
			wantLocked(t, other, "t")
		}
	}
	lease.Release()
	ok(t, second(other.Lock(ctx(t), "t", long)))
	is(t, lease.Renew(ctx(t)), session.ErrLocked)
	lease.Release()
	wantLocked(t, store, "t")
}
