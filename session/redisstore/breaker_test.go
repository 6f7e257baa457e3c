package redisstore

import (
	"testing"
	"time"
)

func TestBreaker(t *testing.T) {
	now := time.Unix(1000, 0)
	b := breaker{now: func() time.Time { return now }}
	f := func(what string, want bool) {
		t.Helper()
		if got := b.allow(); got != want {
			t.Fatalf("%s: allowed %v, want %v", what, got, want)
		}
	}
	f("at first", true)
	b.report(false)
	f("after a success, or a failure that came at once", true)
	b.report(true)
	f("after a timeout", false)
	now = now.Add(rest - 1)
	f("a little too early", false)
	now = now.Add(1)
	f("the probe", true)
	f("beside the probe", false)
	b.report(true)
	now = now.Add(rest - 1)
	f("after a probe in vain", false)
	now = now.Add(1)
	f("the next probe", true)
	now = now.Add(rest)
	f("another, since that one never came back", true)
	b.report(false)
	f("after a probe that came through", true)
	f("and from then on", true)
}
