package observe

import (
	"sync"
	"time"
)

const (
	activeFor  = 15 * time.Minute // how long a session counts as active after its newest request
	activeMost = 100_000          // sessions remembered; more are not counted
)

// activeSessions knows which sessions had a request lately. It may be used concurrently.
type activeSessions struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

func (a *activeSessions) saw(id string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.seen[id]; !known && len(a.seen) >= activeMost {
		if a.forget(at); len(a.seen) >= activeMost {
			return
		}
	}
	a.seen[id] = at
}

// count returns how many sessions are active at a time.
func (a *activeSessions) count(at time.Time) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(at)
	return len(a.seen)
}

func (a *activeSessions) forget(at time.Time) {
	for id, last := range a.seen {
		if at.Sub(last) > activeFor {
			delete(a.seen, id)
		}
	}
}
