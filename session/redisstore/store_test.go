package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session/redisstore"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
	"github.com/dewpoint-proxy/dewpoint/session/store"
	"github.com/dewpoint-proxy/dewpoint/session/store/storetest"
)

// TestStore tests the store itself, as TestConformance... test the sessions in it.
func TestStore(t *testing.T) {
	cluster := func(t *testing.T) redisstore.Options {
		quick.Skip(t)
		return redisstore.Options{Addrs: sessiontest.StartCluster(t).Addrs(), Cluster: true}
	}
	for name, start := range map[string]func(t *testing.T) redisstore.Options{
		"miniredis": func(t *testing.T) redisstore.Options {
			return redisstore.Options{Addrs: []string{miniredis.RunT(t).Addr()}}
		},
		"server": func(t *testing.T) redisstore.Options {
			return redisstore.Options{Addrs: []string{sessiontest.StartRedis(t).Addr}}
		},
		"cluster": cluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, n := start(t), 0
			o.TTL, o.Timeout = time.Hour, 10*time.Second
			storetest.Run(t, func(*testing.T) store.Store {
				n++
				o.Prefix = fmt.Sprintf("dp:test%d:", n)
				return redisstore.Open(o)
			}, redisstore.Life)
		})
	}
}
