package redisstore

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// TestForgetOfASessionThatBeginsAgain begins a session again after Forget has deleted it and before Forget looks for late
// writes. The session was deleted all the same.
func TestForgetOfASessionThatBeginsAgain(t *testing.T) {
	t.Parallel()
	cluster := sessiontest.StartCluster(t)
	s, ctx := start(t, Options{Addrs: cluster.Addrs(), Cluster: true, TTL: time.Hour, Timeout: 10 * time.Second}), t.Context()
	s.lateWrites = time.Second
	must(t, s.Append(ctx, twoEvents("t", 0)))
	forgotten := make(chan error, 1)
	go func() { forgotten <- s.Forget(ctx, "s") }()
	for _, key := range []string{s.keys.thread("t"), s.keys.doomedSession("s")} {
		for {
			n, err := s.client.Exists(ctx, key).Result()
			must(t, err)
			if n == 0 {
				break
			}
		}
	}
	must(t, s.Append(ctx, twoEvents("t", 0)))
	must(t, <-forgotten)
	must(t, second(s.Thread(ctx, "t")))
}
