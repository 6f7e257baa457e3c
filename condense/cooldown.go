package condense

import (
	"sync"
	"time"
)

// How long a summariser that failed is left alone: doubling from the first to the longest with each further failure.
const (
	FirstCooldown   = 30 * time.Second
	LongestCooldown = 10 * time.Minute
)

// Cooldown remembers that a summariser fails, so that soft condensations leave it alone for a while. There is one for
// each summariser. The zero value is ready. It may be used concurrently.
type Cooldown struct {
	mu    sync.Mutex
	next  time.Duration // what the next failure costs, 0: FirstCooldown
	until time.Time
}

// Cooling reports whether the summariser is to be left alone at the time now.
func (c *Cooldown) Cooling(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Before(c.until)
}

// Failed notes a failure at the time now. Failures of calls that were already under way when the cooldown began do not
// prolong it.
func (c *Cooldown) Failed(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.until) {
		return
	}
	wait := max(c.next, FirstCooldown)
	c.until = now.Add(wait)
	c.next = min(2*wait, LongestCooldown)
}

// Succeeded notes a success: the summariser is back.
func (c *Cooldown) Succeeded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next, c.until = 0, time.Time{}
}
