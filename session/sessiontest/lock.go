package sessiontest

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

const long = time.Hour

func (s suite) LockTaken(t *testing.T) {
	store, other := s.pair(t)
	lease, err := store.Lock(ctx(t), "t", long)
	ok(t, err)
	for _, st := range []session.Store{store, other} {
		is(t, second(st.Lock(ctx(t), "t", long)), session.ErrLocked)
	}
	leaseU, err := other.Lock(ctx(t), "u", long)
	ok(t, err)
	defer leaseU.Release()
	lease.Release()
	lease2, err := other.Lock(ctx(t), "t", long)
	ok(t, err)
	lease.Release() // the old one's, once more: it must not open the new one
	is(t, second(store.Lock(ctx(t), "t", long)), session.ErrLocked)
	lease2.Release()
}

// LockExpires waits for a real lock to run out, if the store's clock is a real one.
func (s suite) LockExpires(t *testing.T) {
	const short = 20 * time.Millisecond
	store := s.fresh(t)
	late, err := store.Lock(ctx(t), "t", short)
	ok(t, err)
	if s.hooks.Pass != nil {
		s.hooks.Pass(short)
	}
	var lease session.Lease
	Eventually(t, "the lock expires", func() (err error) {
		lease, err = store.Lock(ctx(t), "t", long)
		return err
	})
	late.Release() // too late: the lock is another's by now
	is(t, second(store.Lock(ctx(t), "t", long)), session.ErrLocked)
	lease.Release()
	lease, err = store.Lock(ctx(t), "t", long)
	ok(t, err)
	lease.Release()
}

func (s suite) LockOne(t *testing.T) {
	store, other := s.pair(t)
	var holders atomic.Int32
	together(t, 16, func(_ int, store session.Store) error {
		_, err := store.Lock(ctx(t), "t", long)
		if errors.Is(err, session.ErrLocked) {
			return nil
		}
		holders.Add(1)
		return err
	}, store, other)
	equal(t, holders.Load(), 1)
}

func (s suite) LockNoTime(t *testing.T) {
	store := s.fresh(t)
	for _, ttl := range []time.Duration{0, -time.Second} {
		if _, err := store.Lock(ctx(t), "t", ttl); err == nil || errors.Is(err, session.ErrLocked) {
			t.Errorf("a lock of %v: %v", ttl, err)
		}
	}
}

// LockRenewed: a lock that is renewed does not run out, and one that another has by now is not renewed.
func (s suite) LockRenewed(t *testing.T) {
	const short = 200 * time.Millisecond
	store, other := s.pair(t)
	lease, err := store.Lock(ctx(t), "t", short)
	ok(t, err)
	for range 20 {
		ok(t, lease.Renew(ctx(t)))
		if s.hooks.Pass != nil {
			s.hooks.Pass(short * 3 / 4)
			is(t, second(other.Lock(ctx(t), "t", long)), session.ErrLocked)
		}
	}
	lease.Release()
	ok(t, second(other.Lock(ctx(t), "t", long)))
	is(t, lease.Renew(ctx(t)), session.ErrLocked)
	lease.Release()
	is(t, second(store.Lock(ctx(t), "t", long)), session.ErrLocked)
}
