package sessiontest

import (
	"errors"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

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
