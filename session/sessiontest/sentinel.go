package sessiontest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// StartSentinel starts a Sentinel that watches master under the given name. quorum is the number of Sentinels that must agree
// that the master is down; lines are added to the configuration. Like StartRedis, it needs redis-server.
func StartSentinel(t testing.TB, name string, master *Server, quorum int, lines ...string) *Server {
	t.Helper()
	s := newServer(t)
	host, port := hostPort(t, master.Addr)
	_, own := hostPort(t, s.Addr)
	config := append([]string{
		"port " + own, "bind 127.0.0.1", "dir " + s.dir,
		fmt.Sprintf("sentinel monitor %s %s %s %d", name, host, port, quorum),
	}, lines...)
	s.args = []string{s.File("sentinel.conf", []byte(strings.Join(config, "\n")+"\n")), "--sentinel"}
	s.Start()
	return s
}

// Group is a master, a replica, and three Sentinels of which two must agree that the master is down.
type Group struct {
	Name      string
	Master    *Server
	Replica   *Server
	Sentinels []*Server

	t testing.TB
}

// StartGroup starts a group that detects a failed master quickly, and waits until each Sentinel knows all others.
func StartGroup(t testing.TB, name string) *Group {
	t.Helper()
	g := &Group{Name: name, Master: StartRedis(t), t: t}
	g.Replica = StartReplica(t, g.Master)
	for range 3 {
		g.Sentinels = append(g.Sentinels, StartSentinel(t, name, g.Master, 2,
			"sentinel down-after-milliseconds "+name+" 1000", "sentinel failover-timeout "+name+" 4000"))
	}
	for _, s := range g.Sentinels {
		s.await([]string{"INFO", "sentinel"}, "slaves=1,sentinels=3")
	}
	return g
}

// Addrs returns the addresses of the Sentinels.
func (g *Group) Addrs() []string { return addrs(g.Sentinels) }

// heard matches the state of a healthy master from which a Sentinel has heard within 1,000 s. One from which it has never
// heard was last heard in 1970.
var heard = regexp.MustCompile(`(?s)\nflags\nmaster\n.*\ninfo-refresh\n\d{1,6}\n`)

// AwaitFailover waits until the replica is the master and all Sentinels know it. Then it swaps Master and Replica.
func (g *Group) AwaitFailover() {
	g.t.Helper()
	host, port := hostPort(g.t, g.Replica.Addr)
	for _, s := range g.Sentinels {
		s.await([]string{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", g.Name}, host+"\n"+port)
	}
	g.Replica.await(replication, "role:master")
	for _, s := range g.Sentinels {
		// Until a Sentinel has heard from the new master, it may take it for dead and return to the former one.
		Eventually(g.t, "the Sentinels talk to the new master", func() error {
			if state := s.Do("SENTINEL", "MASTER", g.Name); !heard.MatchString(state) {
				return fmt.Errorf("the state is %q", state)
			}
			return nil
		})
	}
	g.Master, g.Replica = g.Replica, g.Master
}

// Failover has the Sentinels replace the master, as an operator may, and waits until they have. Sentinels give up if they have
// not heard from the replica for a while, so it repeats the command.
func (g *Group) Failover() {
	g.t.Helper()
	leader := g.Sentinels[0]
	master := func() string { return leader.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", g.Name) }
	before := master()
	Eventually(g.t, "the Sentinels begin a failover", func() error {
		if strings.Contains(leader.Do("SENTINEL", "MASTER", g.Name), "failover_in_progress") {
			return errors.New("it has not ended")
		}
		if master() != before {
			return nil
		}
		_, err := Command(leader.Addr, "SENTINEL", "FAILOVER", g.Name)
		return errors.Join(errors.New("the master is the same"), err)
	})
	g.AwaitFailover()
}

// AwaitReplica waits until the Sentinels have made the former master, which must be running again, a replica.
func (g *Group) AwaitReplica() {
	g.t.Helper()
	g.Replica.await(replication, "role:slave")
	g.Replica.awaitLink()
}
