package redisstore

import (
	"sync"
	"time"
)

// rest is how long the breaker stays open before it lets one call try.
const rest = time.Second

// breaker keeps a server that does not answer from costing every request its deadline: after a call that waited in vain
// all others fail at once, and one a second tries again. Failures that come at once cost nothing and do not open it.
type breaker struct {
	now func() time.Time

	mu    sync.Mutex
	open  bool
	retry time.Time // when the next call may try
}

// allow reports whether a call may go out.
func (b *breaker) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return true
	}
	now := b.now()
	if now.Before(b.retry) {
		return false
	}
	b.retry = now.Add(rest) // the others wait for this one's outcome
	return true
}

// report tells how a call ended.
func (b *breaker) report(waited bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = waited
	if waited {
		b.retry = b.now().Add(rest)
	}
}
