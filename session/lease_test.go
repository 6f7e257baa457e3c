package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestALeaseIsRenewed: a lease is renewed three times within its ttl, even after a failure of the store, until it is released or another
// caller has the lock.
func TestALeaseIsRenewed(t *testing.T) {
	const ttl = 3 * time.Second
	for name, c := range map[string]struct {
		renewal error // the first one's
		lost    bool
	}{
		"renewed":                {nil, false},
		"the store fails once":   {session.ErrUnavailable, false},
		"another caller took it": {session.ErrLocked, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var renewed []time.Duration
				begun, released := time.Now(), 0
				lease := session.Lease{Renew: func(context.Context) error {
					if renewed = append(renewed, time.Since(begun)); len(renewed) == 1 {
						return c.renewal
					}
					return nil
				}, Release: func() { released++ }}
				held, release := lease.Hold(t.Context(), ttl)
				time.Sleep(ttl + time.Millisecond)
				synctest.Wait()
				if lost := held.Err() != nil; lost != c.lost || lost && !errors.Is(context.Cause(held), session.ErrLocked) {
					t.Errorf("lost %t, because of %v", lost, context.Cause(held))
				}
				if want := map[bool]int{true: 1, false: 3}[c.lost]; len(renewed) != want || renewed[0] != ttl/3 {
					t.Errorf("renewed after %v, want %d times", renewed, want)
				}
				if release(); held.Err() == nil || released != 1 {
					t.Errorf("released %d times, its context ended with %v", released, held.Err())
				}
			})
		})
	}
}
