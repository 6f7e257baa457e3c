package sessiontest

import (
	"errors"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

const long = time.Hour

func lock(t *testing.T, store session.Backend, id session.ThreadID, ttl time.Duration) session.Lease {
	t.Helper()
	return must(store.Lock(ctx(t), id, ttl))(t)
}

func wantLocked(t *testing.T, store session.Backend, id session.ThreadID) {
	t.Helper()
	is(t, second(store.Lock(ctx(t), id, long)), session.ErrLocked)
}

func (s suite) LockTaken(t *testing.T) {
	store, other := s.pair(t)
	former := lock(t, store, "t", long)
	wantLocked(t, store, "t")
	wantLocked(t, other, "t")
	lock(t, other, "another", long)
	former.Release()
	lease := lock(t, other, "t", long)
	former.Release() // does not release the new lock
	wantLocked(t, store, "t")
	lease.Release()
}

// LockExpires waits for a lock to expire, in real time if the store has no other clock.
func (s suite) LockExpires(t *testing.T) {
	const short = 20 * time.Millisecond
	store := s.fresh(t)
	late := lock(t, store, "t", short)
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
	lock(t, store, "t", long).Release()
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
	lease := lock(t, store, "t", short)
	for range 20 {
		ok(t, lease.Renew(ctx(t)))
		if s.hooks.Pass != nil {
			s.hooks.Pass(short * 3 / 4)
			wantLocked(t, other, "t")
		}
	}
	lease.Release()
	lock(t, other, "t", long)
	is(t, lease.Renew(ctx(t)), session.ErrLocked)
	lease.Release()
	wantLocked(t, store, "t")
}
