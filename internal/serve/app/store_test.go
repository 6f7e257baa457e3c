package app

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/session/redisstore"
)

func TestRedisOptions(t *testing.T) {
	f := func(name string, r config.Redis, want redisstore.Options) {
		t.Helper()
		got, err := redisOptions(config.Store{TTL: time.Hour, Timeout: time.Second, Content: true, Redis: r})
		want.TTL, want.Timeout = time.Hour, time.Second/2
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	f("url", config.Redis{URL: "redis://user:pass@host:1/2", Addrs: []string{"127.0.0.1:6379"}},
		redisstore.Options{Addrs: []string{"host:1"}, Username: "user", Password: "pass", DB: 2})
	f("sentinel", config.Redis{
		Addrs: []string{"a:1", "b:1"}, Username: "user", Password: "pass", MasterName: "main", SentinelUsername: "watch", SentinelPassword: "word",
	}, redisstore.Options{
		Addrs: []string{"a:1", "b:1"}, Username: "user", Password: "pass", MasterName: "main", SentinelUsername: "watch", SentinelPassword: "word",
	})
	f("cluster", config.Redis{Addrs: []string{"a:1"}, Cluster: true}, redisstore.Options{Addrs: []string{"a:1"}, Cluster: true})
}

// TestRedisFilesAreRead checks that an unreadable file is reported at the start, under its key.
func TestRedisFilesAreRead(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.pem")
	for key, r := range map[string]config.Redis{
		"store.redis.tls_ca":   {TLSCA: missing},
		"store.redis.tls_cert": {TLSCert: missing, TLSKey: missing},
		"store.redis.url":      {URL: config.Redacted},
	} {
		r.Addrs, r.TLS = []string{"a:1"}, true
		if _, err := redisOptions(config.Store{Redis: r}); err == nil || !strings.Contains(err.Error(), key+": ") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
