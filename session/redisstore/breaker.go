package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// breaker keeps a server that does not answer from costing every request its deadline: after a call that waited in vain
// all others fail at once, until the server answers a probe. Probes are made apart from the calls, at once and then with a
// rest in between, so that no request is ever the one that tries. Failures that come at once cost nothing and do not
// open it; a slow answer is an answer.
type breaker struct {
	probe func(context.Context) (answered bool)
	rest  time.Duration

	open    atomic.Bool
	mu      sync.Mutex // for opening and stopping
	stopped bool
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup
}

func newBreaker(rest time.Duration, probe func(context.Context) bool) *breaker {
	b := &breaker{probe: probe, rest: rest}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// allow reports whether a call may go out.
func (b *breaker) allow() bool { return !b.open.Load() }

// trip opens the breaker after a call that waited in vain.
func (b *breaker) trip() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped || b.open.Swap(true) {
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

// stop ends the probing and waits for it.
func (b *breaker) stop() {
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	b.cancel()
	b.work.Wait()
}
