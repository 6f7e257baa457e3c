package observe

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	activeTime = 15 * time.Minute // how long a session counts as active after its latest request
	maxActive  = 100_000          // sessions that are counted
)

// activeSessions holds the time of each session's latest request.
type activeSessions struct{ *lru.Cache[string, time.Time] }

func newActiveSessions() activeSessions {
	cache, _ := lru.New[string, time.Time](maxActive) // fails only for a size of 0
	return activeSessions{cache}
}

// count returns how many sessions are active at a time.
func (a activeSessions) count(at time.Time) (n int) {
	for _, last := range a.Values() {
		if at.Sub(last) <= activeTime {
			n++
		}
	}
	return n
}
