package session

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Lease is a lock that the caller has taken.
type Lease struct {
	Renew   func(ctx context.Context) error // extends the lock by its ttl; ErrLocked if another caller has taken it
	Release func()                          // releases the lock unless another caller has taken it; may be called more than once
}

// renewals is how often a lock is renewed within its ttl.
const renewals = 3

// Hold renews a lease that was taken for ttl, in a goroutine, until release is called. The returned context is cancelled if another caller
// takes the lock or ctx is done. The caller must call release, which waits for the goroutine and releases the lock.
func (l Lease) Hold(ctx context.Context, ttl time.Duration) (held context.Context, release func()) {
	held, cancel := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		tick := time.NewTicker(ttl / renewals)
		defer tick.Stop()
		for {
			select {
			case <-held.Done():
				return
			case <-tick.C:
			}
			if err := l.Renew(held); errors.Is(err, ErrLocked) {
				cancel(err)
			}
		}
	})
	return held, func() {
		cancel(nil)
		renewing.Wait()
		l.Release()
	}
}
