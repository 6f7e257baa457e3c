package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/records"
	"github.com/dewpoint-proxy/dewpoint/session/redisstore"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// ailing is a Redis with a fault in the middle of a run.
type ailing struct {
	store   string             // its section in the configuration
	options redisstore.Options // to inspect it afterwards
	goes    func(thread string)
	during  func() // called before each step during the fault
	comes   func()
}

// silence is how long requests wait for a Redis that does not answer: longer than a busy machine takes, and short enough to wait for.
const silence = 4 * time.Second

// fault is a fault and its visible effects while it lasts. Every request is served during any of them.
type fault struct {
	name       string
	redis      func(t *testing.T) ailing
	recognised bool // and condensed if that needs no write; otherwise requests are forwarded unchanged
	degraded   bool
}

func faults() []fault {
	return []fault{
		{name: "frozen", redis: frozen, degraded: true},
		{name: "black hole", redis: blackHole, degraded: true},
		{name: "loading", redis: loading, degraded: true},
		{name: "no permission", redis: noPermission, degraded: true},
		{name: "slow", redis: slow, recognised: true},
		{name: "cut", redis: cut, recognised: true},
		{name: "out of memory", redis: outOfMemory, recognised: true, degraded: true},
		{name: "read only", redis: readOnly, recognised: true, degraded: true},
		{name: "Sentinel failover", redis: sentinelFailover, degraded: true},
		{name: "Cluster failover", redis: clusterFailover, degraded: true},
		{name: "resharding", redis: resharding, recognised: true, degraded: true},
	}
}

// TestRedisFaults plays a run through each fault. Every request is served during the fault. Afterwards, without a restart, the
// run is recognised and condensed again in its original thread, and the log is complete.
func TestRedisFaults(t *testing.T) {
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			redis := f.redis(t)
			s := newSetting(t, fakeupstream.Options{Keep: 16})
			p := serve(t, "--config", s.config(t, redis.store))
			l := &line{to: func(exchange) *process { return p }}
			run := beginning(30)
			l.play(t, run, judge.Options{
				Upstream: s.Upstream, Stream: true, Expect: judge.Expectations{Tolerant: true},
				Before: func(step int) {
					switch {
					case step == redisGoes:
						redis.goes(l.placed[0].Thread)
					case step == redisComes:
						redis.comes()
						s.awaitHealth(t, p)
					}
					if redis.during != nil && redisGoes <= step && step < redisComes {
						redis.during()
					}
				},
				Each: func(step judge.Step) { f.check(t, p, step) },
			})
			f.checkPlaces(t, l.placed)
			checkStore(t, redis.options, l.placed[0].Thread, run)
		})
	}
}

// check checks one step.
func (f fault) check(t *testing.T, p *process, step judge.Step) {
	t.Helper()
	away := redisGoes <= step.Number && step.Number < redisComes
	switch {
	case !away && step.Forwarded > maxSize, away && !f.recognised && step.Forwarded != step.Events:
		t.Errorf("step %d: %d of %d events forwarded", step.Number, step.Forwarded, step.Events)
	case away && f.degraded:
		sessiontest.Eventually(t, "the metrics say that the store is away", func() error { return p.degraded(true) })
	case away:
		if err := p.degraded(false); err != nil {
			t.Errorf("step %d: %v", step.Number, err)
		}
	}
}

func (f fault) checkPlaces(t *testing.T, placed []place) {
	t.Helper()
	if f.recognised {
		oneThread(t, placed)
		return
	}
	for _, x := range placed[redisGoes:redisComes] {
		if x.Thread != "" {
			t.Errorf("step %d was recognised without Redis", x.Step)
		}
	}
	oneThread(t, slices.Concat(placed[:redisGoes], placed[redisComes:]))
}

// degraded returns an error unless the metrics report the fault.
func (p *process) degraded(want bool) error {
	line := "dewpoint_store_degraded 0"
	if want {
		line = "dewpoint_store_degraded 1"
	}
	if !slices.Contains(p.metrics(), line) {
		return fmt.Errorf("the metrics do not say %s", line)
	}
	return nil
}

// probes is the number of consecutive conversations that show that all of a Cluster is reached: each touches some slots, and the
// proxy's map of the others may be outdated.
const probes = 8

// awaitHealth sends new conversations until several in a row are recognised and written, and the proxy reports that it is
// healthy.
func (s *setting) awaitHealth(t testing.TB, p *process) {
	t.Helper()
	s.aside.Store(true)
	defer s.aside.Store(false)
	n := 0
	sessiontest.Eventually(t, "the proxy uses Redis again", func() error {
		for range probes {
			n++
			answer := send(t, p, body(append(slices.Clone(longRun().Messages[:1]), encode(map[string]string{"role": "user", "content": fmt.Sprint("probe ", n)}))))
			ok(t, answer.finish())
			if answer.Header.Get("X-Dewpoint-Thread") == "" {
				return errors.New("forwarded as it came")
			}
		}
		return p.degraded(false)
	})
}

// checkStore checks the proxies' log in a Redis.
func checkStore(t testing.TB, o redisstore.Options, thread string, run replay.Run) {
	t.Helper()
	o.Timeout = patience
	store := records.New(redisstore.Open(o), records.Options{Content: true})
	defer store.Close()
	checkLog(t, store, session.ThreadID(thread), run)
}

func frozen(t *testing.T) ailing {
	redis := sessiontest.StartRedis(t)
	return ailing{
		store: inRedisWithin(redis.Addr, silence), options: redisstore.Options{Addrs: []string{redis.Addr}},
		goes: func(string) { redis.Freeze() }, comes: redis.Thaw,
	}
}

func blackHole(t *testing.T) ailing {
	redis := sessiontest.StartRedis(t)
	relay := sessiontest.StartRelay(t, redis.Addr)
	return ailing{
		store: inRedisWithin(relay.Addr, silence), options: redisstore.Options{Addrs: []string{redis.Addr}},
		goes: func(string) { relay.Swallow(true) }, comes: func() { relay.Swallow(false) },
	}
}

func slow(t *testing.T) ailing {
	redis := sessiontest.StartRedis(t)
	relay := sessiontest.StartRelay(t, redis.Addr)
	return ailing{
		store: inRedis(relay.Addr), options: redisstore.Options{Addrs: []string{redis.Addr}},
		goes: func(string) { relay.Delay(100 * time.Millisecond) }, comes: func() { relay.Delay(0) },
	}
}

// cut resets all connections before each step.
func cut(t *testing.T) ailing {
	redis := sessiontest.StartRedis(t)
	relay := sessiontest.StartRelay(t, redis.Addr)
	return ailing{
		store: inRedis(relay.Addr), options: redisstore.Options{Addrs: []string{redis.Addr}},
		goes: func(string) {}, during: relay.Cut, comes: func() {},
	}
}

// loading restarts the server, which then loads its data slowly until the fault ends.
func loading(t *testing.T) ailing {
	redis := sessiontest.StartRedis(t, "--appendonly", "no", "--loading-process-events-interval-bytes", "1024")
	return ailing{
		store: inRedis(redis.Addr), options: redisstore.Options{Addrs: []string{redis.Addr}},
		goes: func(string) {
			redis.Do("EVAL", "for i = 1, 3000 do redis.call('SET', 'fill:' .. i, string.rep('x', 200)) end", "0")
			redis.Do("SAVE")
			redis.Kill()
			redis.Launch("--key-load-delay", "10000")
			sessiontest.Eventually(t, "the server loads", func() error {
				if _, err := sessiontest.Command(redis.Addr, "PING"); err == nil || !strings.Contains(err.Error(), "LOADING") {
					return errors.New("it does not")
				}
				return nil
			})
		},
		comes: func() { redis.Do("CONFIG", "SET", "key-load-delay", "0") },
	}
}

// noPermission revokes the user's permissions. The proxy has the user in a URL.
func noPermission(t *testing.T) ailing {
	redis := sessiontest.StartRedis(t, "--user", "app", "on", ">correct-horse", "~*", "&*", "+@all")
	return ailing{
		store:   fmt.Sprintf("{type: redis, timeout: 1m, redis: {url: %q}}", "redis://app:correct-horse@"+redis.Addr+"/0"),
		options: redisstore.Options{Addrs: []string{redis.Addr}},
		goes:    func(string) { redis.Do("ACL", "SETUSER", "app", "-@all") },
		comes:   func() { redis.Do("ACL", "SETUSER", "app", "+@all") },
	}
}

func outOfMemory(t *testing.T) ailing {
	redis := sessiontest.StartRedis(t)
	return ailing{
		store: inRedis(redis.Addr), options: redisstore.Options{Addrs: []string{redis.Addr}},
		goes:  func(string) { redis.Do("CONFIG", "SET", "maxmemory", "1") },
		comes: func() { redis.Do("CONFIG", "SET", "maxmemory", "0") },
	}
}

// readOnly makes the server the replica of a master that cannot be reached.
func readOnly(t *testing.T) ailing {
	redis := sessiontest.StartRedis(t)
	return ailing{
		store: inRedisWithin(redis.Addr, silence), options: redisstore.Options{Addrs: []string{redis.Addr}},
		goes:  func(string) { redis.Do("REPLICAOF", "127.0.0.1", "1") },
		comes: func() { redis.Do("REPLICAOF", "NO", "ONE") },
	}
}

// sentinelFailover kills the master, and restarts it once its replica has taken over.
func sentinelFailover(t *testing.T) ailing {
	group := sessiontest.StartGroup(t, "main")
	for _, s := range group.Sentinels { // only after the run's steps without a master
		s.Do("SENTINEL", "SET", "main", "down-after-milliseconds", "600000")
	}
	return ailing{
		store:   fmt.Sprintf("{type: redis, timeout: %s, redis: {addrs: %s, master_name: main}}", silence, encode(group.Addrs())),
		options: redisstore.Options{Addrs: group.Addrs(), MasterName: "main"},
		goes:    func(string) { group.Master.Kill() },
		comes: func() {
			for _, s := range group.Sentinels {
				s.Do("SENTINEL", "SET", "main", "down-after-milliseconds", "500")
			}
			group.AwaitFailover()
			group.Replica.Start()
		},
	}
}

// clusterFailover kills one master, whose replica takes over only after the run's steps without it.
func clusterFailover(t *testing.T) ailing {
	cluster := sessiontest.StartCluster(t)
	replica := cluster.AddReplica(cluster.Nodes[1])
	replica.Do("CONFIG", "SET", "cluster-replica-no-failover", "yes")
	return ailing{
		store:   fmt.Sprintf("{type: redis, timeout: %s, redis: {addrs: %s, cluster: true}}", silence, encode(cluster.Addrs())),
		options: redisstore.Options{Addrs: cluster.Addrs(), Cluster: true},
		goes:    func(string) { cluster.Nodes[1].Kill() },
		comes: func() {
			replica.Do("CONFIG", "SET", "cluster-replica-no-failover", "no")
			cluster.AwaitMaster(replica)
		},
	}
}

// resharding moves the thread's slot, with half of the thread on either side until the end.
func resharding(t *testing.T) ailing {
	cluster := sessiontest.StartCluster(t)
	var move *sessiontest.Move
	return ailing{
		store:   fmt.Sprintf("{type: redis, timeout: %s, redis: {addrs: %s, cluster: true}}", silence, encode(cluster.Addrs())),
		options: redisstore.Options{Addrs: cluster.Addrs(), Cluster: true},
		goes: func(thread string) {
			record := "dp:t:{" + thread + "}"
			move = cluster.MoveSlot(record)
			move.Key(record)
		},
		comes: func() { move.End() },
	}
}

// TestManyRequestsWithoutRedis sends many concurrent requests to a proxy whose Redis has never answered: no request waits while another one
// finds that out.
func TestManyRequestsWithoutRedis(t *testing.T) {
	t.Parallel()
	redis := sessiontest.StartRedis(t)
	redis.Freeze()
	s := newSetting(t, fakeupstream.Options{Keep: 16})
	p := serve(t, "--config", s.config(t, inRedisWithin(redis.Addr, silence)))
	var all []<-chan struct{}
	for range 100 {
		all = append(all, sendAside(t, p, body(demo.Sample().Messages[:4])))
	}
	for _, done := range all {
		<-done
	}
	if n := len(s.Upstream.Requests()); n != 16 { // which is all that it keeps
		t.Errorf("%d requests reached the upstream", n)
	}
	if !slices.Contains(p.metrics(), `dewpoint_requests_total{code="",dialect="chat",model="`+judge.Model+`",status="2xx",tenant="default"} 100`) {
		t.Errorf("not all were answered:\n%s", strings.Join(p.metrics(), "\n"))
	}
	redis.Thaw()
	s.awaitHealth(t, p)
}

// TestRedisTLS uses a server that requires TLS with client certificates from a private authority.
func TestRedisTLS(t *testing.T) {
	t.Parallel()
	authority := sessiontest.NewAuthority(t)
	server, secure := sessiontest.StartRedisTLS(t, authority, authority.Issue("redis.internal"))
	own := authority.Issue("dewpoint")
	s := newSetting(t, fakeupstream.Options{Keep: 16})
	p := serve(t, "--config", s.config(t, fmt.Sprintf(
		"{type: redis, timeout: 1m, redis: {url: %q, tls_ca: %q, tls_cert: %q, tls_key: %q, tls_server_name: redis.internal}}", "rediss://"+secure,
		server.File("authority.pem", authority.PEM), server.File("own.pem", own.PEM), server.File("own.key", own.Key))))
	l := &line{to: func(exchange) *process { return p }}
	run := beginning(12)
	l.play(t, run, judge.Options{Upstream: s.Upstream, Stream: true, Expect: judge.Expectations{MaxSize: maxSize}})
	oneThread(t, l.placed)
	checkRedis(t, server.Addr, l.placed[0].Thread, run)
}

// TestRedisEvicts uses a server that is far too small and evicts the least recently used keys. The judge checks that nothing
// invalid is forwarded; no summary is ever empty.
func TestRedisEvicts(t *testing.T) {
	t.Parallel()
	redis := sessiontest.StartRedis(t, "--appendonly", "no", "--maxmemory-policy", "allkeys-lru", "--maxmemory-samples", "3")
	s := newSetting(t, fakeupstream.Options{Keep: 16})
	p := serve(t, "--config", s.config(t, inRedis(redis.Addr)))
	redis.Do("CONFIG", "SET", "maxmemory", fmt.Sprint(memoryOf(t, redis)+150_000))
	for range 3 { // the same run, each time after much of it was evicted
		l := &line{to: func(exchange) *process { return p }}
		l.play(t, longRun(), judge.Options{
			Upstream: s.Upstream, Stream: true, Expect: judge.Expectations{Tolerant: true},
			Each: func(judge.Step) {
				if strings.Contains(string(lastBody(s.Upstream)), `{"role":"user","content":""}`) {
					t.Error("an empty summary was forwarded")
				}
			},
		})
	}
	if stats := redis.Do("INFO", "stats"); strings.Contains(stats, "evicted_keys:0\r") {
		t.Error("nothing was evicted")
	}
}

func memoryOf(t *testing.T, redis *sessiontest.Server) (bytes int) {
	t.Helper()
	_, rest, _ := strings.Cut(redis.Do("INFO", "memory"), "used_memory:")
	_, err := fmt.Sscan(rest, &bytes)
	ok(t, err)
	return bytes
}
