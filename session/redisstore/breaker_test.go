package redisstore

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestBreaker: after a call that got no answer none goes out until a probe is answered, and probes are not sent by calls.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes atomic.Int32
		var answers atomic.Bool
		b := newBreaker(time.Second, func(context.Context) bool {
			probes.Add(1)
			return answers.Load()
		})
		f := func(what string, after time.Duration, allowed bool, probed int32) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if b.allow() != allowed || probes.Load() != probed {
				t.Errorf("%s: allowed %v, probed %d times, want %v, %d", what, b.allow(), probes.Load(), allowed, probed)
			}
		}
		f("at first", 0, true, 0)
		b.trip()
		f("after a timeout", 0, false, 1)
		b.trip()
		f("after another", 0, false, 1)
		f("for a while", 3*time.Second, false, 4)
		answers.Store(true)
		f("after an answer", time.Second, true, 5)
		f("and from then on", time.Minute, true, 5)
		b.trip()
		f("after a timeout that it answers at once", 0, true, 6)
		answers.Store(false)
		b.trip()
		f("after yet another", 0, false, 7)
		b.stop()
		f("after the end", time.Minute, false, 7)
		b.trip()
		f("a late timeout", time.Minute, false, 7)
		b.stop()
	})
}

// TestBreakerStops: stop ends a running probe.
func TestBreakerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(time.Second, func(ctx context.Context) bool {
			<-ctx.Done()
			return false
		})
		b.trip()
		synctest.Wait()
		b.stop()
	})
}
