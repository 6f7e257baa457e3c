package limit

import (
	"sync"
	"time"
)

// Bucket is a leaky bucket. Amounts that are taken fill it, and it leaks the allowance per minute. So it admits up to a minute's allowance at
// once, and over time no more than the allowance per minute. The allowance is a parameter of each call, so it may change while the bucket is
// in use. A Bucket is used through a Share.
type Bucket struct {
	mu   sync.Mutex
	held float64
	at   time.Time // the time at which the bucket held this much
}

// draw takes n if it fits or if owed is true. Otherwise it returns how long to wait, which is never 0. An n above the allowance fits into an
// empty bucket. If n is 0, draw takes nothing and returns how long to wait until anything fits.
func (b *Bucket) draw(now time.Time, n, perMinute int, owed bool) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !owed {
		if gone := now.Sub(b.at); gone > 0 { // if the clock was set back, nothing leaks for that long
			b.held = max(b.held-gone.Minutes()*float64(perMinute), 0)
		}
		b.at = now
		if over := b.held + float64(min(max(n, 1), perMinute)-perMinute); over > 0 {
			return max(time.Duration(over/float64(perMinute)*float64(time.Minute)), 1)
		}
	}
	b.held = max(b.held+float64(n), 0)
	return 0
}

// Draw takes from a named bucket that replicas share, see session.Buckets. It returns false for ok if they cannot share it at present.
type Draw func(bucket string, n, perMinute int, owed bool) (wait time.Duration, ok bool)

// Share is a bucket that replicas share under a name. While they cannot share it, the process uses its own Bucket.
type Share struct {
	*Bucket
	Name string
	Draw Draw // nil: nothing is shared
}

// Take takes n if it fits, and otherwise returns how long to wait. An n above the allowance fits into an empty bucket.
func (s Share) Take(now time.Time, n, perMinute int) (wait time.Duration, ok bool) {
	wait = s.draw(now, n, perMinute, false)
	return wait, wait == 0
}

// Full returns how long to wait until anything fits, 0 if something does now.
func (s Share) Full(now time.Time, perMinute int) time.Duration {
	return s.draw(now, 0, perMinute, false)
}

// Correct adds n to the amount taken, once the actual amount is known. n is negative if less was used than was taken.
func (s Share) Correct(n, perMinute int) { s.draw(time.Time{}, n, perMinute, true) }

func (s Share) draw(now time.Time, n, perMinute int, owed bool) time.Duration {
	if s.Draw != nil {
		if wait, ok := s.Draw(s.Name, n, perMinute, owed); ok {
			return wait
		}
	}
	return s.Bucket.draw(now, n, perMinute, owed)
}
