package limit

import (
	"sync"
	"time"
)

// Bucket is a leaky bucket. It fills with what is taken, and leaks the allowance per minute: it admits up to a minute's allowance at once,
// and no more than that per minute over time. The allowance is a parameter of each call, so it may change while the bucket is in use.
type Bucket struct {
	mu   sync.Mutex
	held float64
	at   time.Time // as of which held is valid
}

// Take takes n if it fits, and otherwise returns how long to wait. An n above the allowance fits into an empty bucket.
func (b *Bucket) Take(now time.Time, n, perMinute int) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leak(now, perMinute)
	if over := b.held + float64(min(n, perMinute)-perMinute); over > 0 {
		return leakTime(over, perMinute), false
	}
	b.held += float64(n)
	return 0, true
}

// Full returns how long to wait until anything fits, 0 if something does now.
func (b *Bucket) Full(now time.Time, perMinute int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leak(now, perMinute)
	if over := b.held + 1 - float64(perMinute); over > 0 {
		return leakTime(over, perMinute)
	}
	return 0
}

// Correct adds n to what was taken, after the actual amount is known. If it was less than was taken, n is negative.
func (b *Bucket) Correct(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = max(b.held+float64(n), 0)
}

// leak updates the bucket to now. If the clock was set back, nothing leaks for that long.
func (b *Bucket) leak(now time.Time, perMinute int) {
	if gone := now.Sub(b.at); gone > 0 {
		b.held = max(b.held-gone.Minutes()*float64(perMinute), 0)
	}
	b.at = now
}

// leakTime returns how long it takes to leak n.
func leakTime(n float64, perMinute int) time.Duration {
	return time.Duration(n / float64(perMinute) * float64(time.Minute))
}

// Draw takes from a named bucket that replicas share, see session.Buckets. It returns ok = false while they cannot share it.
type Draw func(bucket string, n, perMinute int, owed bool) (wait time.Duration, ok bool)

// Share is a bucket that replicas share under a name. While they cannot, it falls back to the process's own bucket.
type Share struct {
	*Bucket
	Name string
	Draw Draw // nil: nothing is shared
}

// Take is Bucket.Take for the shared bucket.
func (s Share) Take(now time.Time, n, perMinute int) (wait time.Duration, ok bool) {
	if wait, ok := s.draw(n, perMinute, false); ok {
		return wait, wait == 0
	}
	return s.Bucket.Take(now, n, perMinute)
}

// Full is Bucket.Full for the shared bucket.
func (s Share) Full(now time.Time, perMinute int) time.Duration {
	if wait, ok := s.draw(0, perMinute, false); ok {
		return wait
	}
	return s.Bucket.Full(now, perMinute)
}

// Correct is Bucket.Correct for the shared bucket.
func (s Share) Correct(n, perMinute int) {
	if _, ok := s.draw(n, perMinute, true); !ok {
		s.Bucket.Correct(n)
	}
}

func (s Share) draw(n, perMinute int, owed bool) (wait time.Duration, ok bool) {
	if s.Draw == nil {
		return 0, false
	}
	return s.Draw(s.Name, n, perMinute, owed)
}
