package redisstore

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

func TestSentinel(t *testing.T) {
	master := sessiontest.StartRedis(t)
	sentinel := sessiontest.StartSentinel(t, "main", master, 1)
	s := start(t, Options{Addrs: []string{sentinel.Addr}, MasterName: "main", Timeout: 5 * time.Second})
	must(t, s.Append(t.Context(), twoEvents("t", 0)))
	n, err := sessiontest.Command(master.Addr, "EXISTS", s.thread("t"))
	must(t, err)
	if n != "1" {
		t.Errorf("the master has %s such threads", n)
	}
	unavailable(t, start(t, Options{Addrs: []string{sentinel.Addr}, MasterName: "other", Timeout: 5 * time.Second}).Ping(t.Context()))
}
