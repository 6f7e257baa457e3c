package limit

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
)

func TestBucket(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := Share{Bucket: &Bucket{}}
	f := func(after time.Duration, n, perMinute int, wait time.Duration) {
		t.Helper()
		got, ok := b.Take(begin.Add(after), n, perMinute)
		if ok != (wait == 0) || (got-wait).Abs() > time.Microsecond {
			t.Errorf("%d after %v: wait %v, %v; want %v", n, after, got, ok, wait)
		}
	}
	f(0, 40, 60, 0)
	f(0, 20, 60, 0)          // a minute's worth at once
	f(0, 1, 60, time.Second) // and then one a second
	f(0, 10, 60, 10*time.Second)
	f(time.Second, 1, 60, 0)
	f(time.Second, 1, 60, time.Second)
	f(0, 1, 60, time.Second) // the clock was set back: no change
	f(time.Second, 1, 60, 0)
	f(time.Minute, 500, 60, time.Second) // more than a minute's worth needs an empty bucket
	f(61*time.Second, 500, 60, 0)
	f(61*time.Second, 1, 60, 441*time.Second)
	f(61*time.Second, 1, 1000, 0) // the limit was raised
	b.Correct(-10000, 60)
	f(61*time.Second, 60, 60, 0)
	b.Correct(60, 60)
	if got := b.Full(begin.Add(61*time.Second), 60); (got - 61*time.Second).Abs() > time.Microsecond {
		t.Errorf("full for %v", got)
	}
	if got := b.Full(begin.Add(122*time.Second), 60); got > time.Microsecond {
		t.Errorf("full for %v", got)
	}
}

// TestBucketHolds: no minute admits more than twice the allowance, and a client that waits as long as Take returned is then admitted.
func TestBucketHolds(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		perMinute := rapid.IntRange(1, 1000).Draw(t, "per minute")
		b := Share{Bucket: &Bucket{}}
		now := time.Unix(0, 0)
		type took struct {
			at time.Time
			n  int
		}
		var all []took
		for range rapid.IntRange(1, 60).Draw(t, "tries") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "ms")) * time.Millisecond)
			n := rapid.IntRange(1, perMinute).Draw(t, "n")
			wait, ok := b.Take(now, n, perMinute)
			if !ok {
				now = now.Add(wait + time.Microsecond)
				if _, ok = b.Take(now, n, perMinute); !ok {
					t.Fatalf("waited %v in vain", wait)
				}
			}
			all = append(all, took{now, n})
		}
		for i := range all {
			sum := 0
			for _, one := range all[i:] {
				if one.at.Sub(all[i].at) < time.Minute {
					sum += one.n
				}
			}
			if sum > 2*perMinute {
				t.Fatalf("%d in a minute, %d allowed", sum, perMinute)
			}
		}
	})
}

// TestAFullBucketAlwaysWaits: a wait of 0 would admit what does not fit.
func TestAFullBucketAlwaysWaits(t *testing.T) {
	const perMinute = 1 << 40 // one leaks in less than a nanosecond
	b, now := Share{Bucket: &Bucket{}}, time.Unix(0, 0)
	b.Take(now, perMinute, perMinute)
	if wait, ok := b.Take(now, 1, perMinute); ok || wait <= 0 {
		t.Errorf("wait %v, %v", wait, ok)
	}
}

// TestReplicasFallBackToTheirOwnBucket: while replicas cannot share a bucket, the process's own bucket applies.
func TestReplicasFallBackToTheirOwnBucket(t *testing.T) {
	shares, drawn := true, 0
	b := Share{Bucket: &Bucket{}, Name: "a", Draw: func(name string, n, perMinute int, owed bool) (time.Duration, bool) {
		drawn += n
		return time.Hour, shares && name == "a" && perMinute == 10 && !owed
	}}
	if wait, ok := b.Take(time.Unix(0, 0), 3, 10); ok || wait != time.Hour || drawn != 3 {
		t.Errorf("shared: wait %v, %v, %d drawn", wait, ok, drawn)
	}
	shares = false
	for want, n := range map[bool]int{true: 10, false: 11} {
		b.Bucket = &Bucket{}
		b.Take(time.Unix(0, 0), 1, 10)
		if _, ok := b.Take(time.Unix(0, 0), n-1, 10); ok != want {
			t.Errorf("its own: %d were admitted: %v", n, ok)
		}
	}
}
