package limit

import (
	"sync"
	"time"
)

// Bucket fills with what is taken and leaks as much a minute as may be taken in one: up to a minute's worth at once, and
// over time no more than that each minute. It knows no limit of its own, so that it goes on when that is changed.
type Bucket struct {
	mu   sync.Mutex
	held float64
	at   time.Time // when held was true
}

// Take adds n if that fits in what is allowed a minute; what is larger than that fits into an empty bucket. Otherwise it
// tells how long to wait.
func (b *Bucket) Take(now time.Time, n, perMinute int) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leak(now, perMinute)
	if over := b.held + float64(min(n, perMinute)-perMinute); over > 0 {
		return leaking(over, perMinute), false
	}
	b.held += float64(n)
	return 0, true
}

// Full tells how long to wait until anything fits at all, 0 if something does.
func (b *Bucket) Full(now time.Time, perMinute int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leak(now, perMinute)
	if over := b.held + 1 - float64(perMinute); over > 0 {
		return leaking(over, perMinute)
	}
	return 0
}

// Correct adds what was taken more than was thought, or gives back what was taken less.
func (b *Bucket) Correct(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = max(b.held+float64(n), 0)
}

// leak brings the bucket up to date. A clock that was set back stops it for that long at most.
func (b *Bucket) leak(now time.Time, perMinute int) {
	if gone := now.Sub(b.at); gone > 0 {
		b.held = max(b.held-gone.Minutes()*float64(perMinute), 0)
	}
	b.at = now
}

func leaking(n float64, perMinute int) time.Duration {
	return time.Duration(n / float64(perMinute) * float64(time.Minute))
}

// Draw takes from a bucket that replicas share, by its name: see session.Buckets. It is not ok while they cannot.
type Draw func(bucket string, n, perMinute int, owed bool) (wait time.Duration, ok bool)

// Share is a process's part in a bucket of that name: while replicas cannot share, its own bucket stands in.
type Share struct {
	*Bucket
	Name string
	Draw Draw // nil: nothing is shared
}

// Take is Bucket.Take.
func (s Share) Take(now time.Time, n, perMinute int) (wait time.Duration, ok bool) {
	if wait, ok := s.draw(n, perMinute, false); ok {
		return wait, wait == 0
	}
	return s.Bucket.Take(now, n, perMinute)
}

// Full is Bucket.Full.
func (s Share) Full(now time.Time, perMinute int) time.Duration {
	if wait, ok := s.draw(0, perMinute, false); ok {
		return wait
	}
	return s.Bucket.Full(now, perMinute)
}

// Correct is Bucket.Correct.
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
