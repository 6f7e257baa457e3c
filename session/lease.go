package session

import (
	"context"
	"errors"
	"time"
)

// Lease is a lock that is held.
type Lease struct {
	Renew   func(ctx context.Context) error // keeps it as long again; ErrLocked if another has it by now
	Release func()                          // gives it back, unless another has it; it may be called again
}

// renewals is how many times a lock is renewed before it would run out.
const renewals = 3

// Hold renews a lease that was taken for ttl until it is released, or lost, which ends the context.
func (l Lease) Hold(ctx context.Context, ttl time.Duration) (held context.Context, release func()) {
	held, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
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
	}()
	return held, func() {
		cancel(nil)
		<-over
		l.Release()
	}
}
