package summaries

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// lockRetry is how often a patient caller tries to lock its thread.
const lockRetry = 100 * time.Millisecond

// Lock says how a thread is locked.
type Lock struct {
	Lease   time.Duration // how long the lock holds unless it is renewed
	Limit   time.Duration // for one call of the store
	Patient bool          // if another has the lock, wait for it until the context ends, and then go on without
	Waits   bool          // false: a patient caller goes on at once
}

// LockThread locks a thread. The lock is renewed until release is called. The context held ends when the lock is lost. A patient caller gets
// one without a lock at worst: the holder takes too long, and of two condensations, the first one logged counts. The error is
// session.ErrLocked if another has the lock, or the store's.
func LockThread(ctx context.Context, store session.Store, thread session.ThreadID, l Lock) (held context.Context, release func(), err error) {
	for waited := false; ; waited = true {
		limited, cancel := context.WithTimeout(ctx, l.Limit)
		lease, err := store.Lock(limited, thread, l.Lease)
		cancel()
		if err == nil {
			held, release = lease.Hold(ctx, l.Lease)
			return held, release, nil
		}
		taken := errors.Is(err, session.ErrLocked) || waited && ctx.Err() != nil
		if !taken || !l.Patient {
			return nil, nil, fmt.Errorf("lock thread: %w", err)
		}
		if !l.Waits {
			return ctx, func() {}, nil
		}
		select {
		case <-time.After(lockRetry):
		case <-ctx.Done():
			return ctx, func() {}, nil
		}
	}
}

// HoldLog waits until no other task of this process logs a condensation of the thread. The lock holds until release is called.
func (s *Service[R]) HoldLog(ctx context.Context, thread session.ThreadID) (release func(), err error) {
	mu := make(mutex, 1)
	if known, ok, _ := s.logging.PeekOrAdd(thread, mu); ok {
		mu = known
	}
	select {
	case mu <- struct{}{}:
		return mu.unlock, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("another request is still logging a condensation: %w", session.ErrUnavailable)
	}
}
