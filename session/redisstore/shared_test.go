package redisstore

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// TestReplicasShareBuckets: three replicas together can draw no more from a bucket than one. An owed amount is drawn even if it does not
// fit, and a returned amount can be drawn again.
func TestReplicasShareBuckets(t *testing.T) {
	t.Parallel()
	server := sessiontest.StartRedis(t)
	const perMinute, tries = 30, 40
	var all sync.WaitGroup
	var took atomic.Int64
	stores := make([]*sessions, 3)
	begun := time.Now()
	for i := range stores {
		stores[i] = start(t, Options{Addrs: []string{server.Addr}, TTL: time.Hour, Timeout: 10 * time.Second})
		all.Go(func() {
			for range tries {
				wait, err := stores[i].under.Draw(t.Context(), "team", 1, perMinute, false)
				if err != nil {
					t.Error(err)
				}
				if wait == 0 {
					took.Add(1)
				}
				if wait > time.Minute {
					t.Errorf("%v to wait", wait)
				}
			}
		})
	}
	all.Wait()
	leaked := int64(time.Since(begun).Minutes()*perMinute) + 1
	if n := took.Load(); n < perMinute || n > perMinute+leaked {
		t.Errorf("%d were taken, of %d and at most %d that leaked", n, perMinute, leaked)
	}
	draw := func(bucket string, n int, owed bool) time.Duration {
		t.Helper()
		wait, err := stores[0].under.Draw(t.Context(), bucket, n, perMinute, owed)
		must(t, err)
		return wait
	}
	if draw("other", perMinute, false) != 0 || draw("other", 0, false) == 0 {
		t.Error("another bucket is not full when it is, or was before")
	}
	if draw("other", 2*perMinute, true) != 0 {
		t.Error("what is owed was refused")
	}
	if wait := draw("other", 1, false); wait < 100*time.Second || wait > 2*time.Minute+2*time.Second {
		t.Errorf("%v until what is owed has leaked", wait)
	}
	if draw("other", -3*perMinute, true); draw("other", 0, false) != 0 {
		t.Error("what was given back is not there")
	}
	if draw("large", 10*perMinute, false) != 0 {
		t.Error("what is larger than the bucket does not fit an empty one")
	}
}
