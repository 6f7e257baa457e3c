package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// breaker is a circuit breaker, so that not every request waits for its deadline if the server does not answer. After a call that got no
// answer, all calls fail at once until the server answers a probe. A separate goroutine sends the probes, the first one at once and the
// others with a pause in between, so that no request has to try. Calls that fail at once do not open the breaker, because they cost
// nothing, and neither do slow answers.
type breaker struct {
	probe func(context.Context) (answered bool)
	rest  time.Duration

	open   atomic.Bool
	mu     sync.Mutex // held while opening and stopping
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
}

func newBreaker(rest time.Duration, probe func(context.Context) bool) *breaker {
	b := &breaker{probe: probe, rest: rest}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// allow reports whether a call may go out.
func (b *breaker) allow() bool { return !b.open.Load() }

// trip opens the breaker after a call that got no answer.
func (b *breaker) trip() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil || b.open.Swap(true) {
		return
	}
	b.work.Go(b.watch)
}

// watch probes until the server answers.
func (b *breaker) watch() {
	ticker := time.NewTicker(b.rest)
	defer ticker.Stop()
	for !b.probe(b.ctx) {
		select {
		case <-ticker.C:
		case <-b.ctx.Done():
			return
		}
	}
	b.open.Store(false)
}

// stop stops probing and waits for the last probe.
func (b *breaker) stop() {
	b.mu.Lock()
	b.cancel()
	b.mu.Unlock()
	b.work.Wait()
}
