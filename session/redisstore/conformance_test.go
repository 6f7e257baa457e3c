package redisstore_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/records"
	"github.com/dewpoint-proxy/dewpoint/session/redisstore"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

func open(t testing.TB, o redisstore.Options, r records.Options) session.Backend {
	t.Helper()
	under := redisstore.Open(o)
	redisstore.Hasten(under)
	return records.New(under, r)
}

// conform runs the suite against one server. Each store has its own prefix, and therefore starts empty.
func conform(t *testing.T, o redisstore.Options, keys *seal.Keys, pass func(time.Duration)) {
	var n atomic.Int64
	prefixes := map[session.Backend]string{}
	o.TTL, o.Timeout = time.Hour, 10*time.Second
	start := func(t *testing.T, prefix string, content bool) session.Backend {
		o := o
		o.Prefix = prefix
		s := open(t, o, records.Options{Content: content, Keys: keys})
		prefixes[s] = prefix
		return s
	}
	fresh := func(t *testing.T, content bool) session.Backend {
		return start(t, fmt.Sprintf("dp:test%d:", n.Add(1)), content)
	}
	sessiontest.Run(t, func(t *testing.T) session.Backend { return fresh(t, true) }, sessiontest.Hooks{
		Dump: func(t *testing.T, s session.Backend) map[string]string { return dump(t, o, prefixes[s]) },
		Damage: func(t *testing.T, s session.Backend, id session.ThreadID, seq uint64, change func([]byte) []byte) {
			damage(t, o, prefixes[s], id, seq, change)
		},
		WithoutContent: func(t *testing.T) session.Backend { return fresh(t, false) },
		Pass:           pass,
		Replica:        func(t *testing.T, s session.Backend) session.Backend { return start(t, prefixes[s], true) },
		Reopen: func(t *testing.T, s session.Backend) session.Backend {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return start(t, prefixes[s], true)
		},
	})
}

func TestConformanceMiniredis(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	server := miniredis.RunT(t)
	conform(t, redisstore.Options{Addrs: []string{server.Addr()}}, nil, server.FastForward)
}

// TestConformanceRedis and TestConformanceCluster run as the users in docs/redis.md.
func TestConformanceRedis(t *testing.T) {
	t.Parallel()
	server := sessiontest.StartRedis(t, redisstore.WithACL(t, "standalone")...)
	conform(t, redisstore.Options{Addrs: []string{server.Addr}, Username: "dewpoint", Password: redisstore.ACLPassword}, nil, nil)
	if log := server.Do("ACL", "LOG"); log != "" {
		t.Errorf("refused:\n%s", log)
	}
}

// TestConformanceRedisSealed keeps content encrypted.
func TestConformanceRedisSealed(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	conform(t, redisstore.Options{Addrs: []string{sessiontest.StartRedis(t).Addr}}, sessiontest.Keys(t, "k"), nil)
}

func TestConformanceCluster(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	cluster := sessiontest.StartCluster(t, redisstore.WithACL(t, "cluster")...)
	conform(t, redisstore.Options{Addrs: cluster.Addrs(), Cluster: true, Username: "dewpoint", Password: redisstore.ACLPassword}, nil, nil)
	for _, node := range cluster.Nodes {
		if log := node.Do("ACL", "LOG"); log != "" {
			t.Errorf("refused:\n%s", log)
		}
	}
}
