package observe

import (
	"sync"
	"time"
)

const (
	activeTime = 15 * time.Minute // how long a session counts as active after its latest request
	maxActive  = 100_000          // further sessions are not counted
)

// activeSessions tracks which sessions had a request recently. It is safe for concurrent use.
type activeSessions struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

// add records a request of a session.
func (a *activeSessions) add(id string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.seen[id]; !known && len(a.seen) >= maxActive {
		a.expire(at)
		if len(a.seen) >= maxActive {
			return
		}
	}
	a.seen[id] = at
}

// count returns how many sessions are active at a time.
func (a *activeSessions) count(at time.Time) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire(at)
	return len(a.seen)
}

func (a *activeSessions) expire(at time.Time) {
	for id, last := range a.seen {
		if at.Sub(last) > activeTime {
			delete(a.seen, id)
		}
	}
}
