package redisstore

import (
	"context"
	"testing"
	"time"
)

// TestStarved: a call that timed out while this process was overloaded is repeated and does not trip the breaker.
func TestStarved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		starved bool
		calls   int
	}{{"starved", true, 2}, {"not starved", false, 1}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{Addrs: []string{blackHole(t)}, Timeout: 20 * time.Millisecond, Rest: time.Hour})
			s.starved = func() bool { return c.starved }
			calls := 0
			err := s.read(t.Context(), func(ctx context.Context) error {
				calls++
				<-ctx.Done()
				return ctx.Err()
			})
			unavailable(t, err)
			if calls != c.calls || s.breaker.allow() != c.starved {
				t.Errorf("%d calls, others may go out: %v", calls, s.breaker.allow())
			}
		})
	}
	s := start(t, Options{Addrs: []string{blackHole(t)}, Timeout: 20 * time.Millisecond, Rest: time.Hour})
	s.starved = func() bool { return true }
	late := false
	must(t, s.read(t.Context(), func(ctx context.Context) error {
		if late {
			return nil // the repeated call succeeds
		}
		late = true
		<-ctx.Done()
		return ctx.Err()
	}))
}
