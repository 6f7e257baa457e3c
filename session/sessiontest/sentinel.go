package sessiontest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// StartSentinel starts a Sentinel that watches master under the given name; quorum must agree that it is down. lines are
// further ones of its configuration. As StartRedis, it needs redis-server.
func StartSentinel(t testing.TB, name string, master *Server, quorum int, lines ...string) *Server {
	t.Helper()
	s := newServer(t)
	host, port := master.hostPort()
	_, own := s.hostPort()
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

// StartGroup starts a group that takes little time to find out that its master is down, and waits until each Sentinel
// knows of all others.
func StartGroup(t testing.TB, name string) *Group {
	t.Helper()
	g := &Group{Name: name, Master: StartRedis(t), t: t}
	g.Replica = StartReplica(t, g.Master)
	for range 3 {
		g.Sentinels = append(g.Sentinels, StartSentinel(t, name, g.Master, 2,
			"sentinel down-after-milliseconds "+name+" 1000", "sentinel failover-timeout "+name+" 4000"))
	}
	for _, s := range g.Sentinels {
		Eventually(t, "the Sentinels know each other", func() error { return s.reports("sentinel", "slaves=1,sentinels=3") })
	}
	return g
}

// Addrs is where the Sentinels are.
func (g *Group) Addrs() []string { return addrs(g.Sentinels) }

// AwaitFailover waits until the Sentinels name the replica as the master, and it is one. The two have then changed their
// parts.
func (g *Group) AwaitFailover() {
	g.t.Helper()
	host, port := g.Replica.hostPort()
	for _, s := range g.Sentinels {
		Eventually(g.t, "the Sentinels have a new master", func() error {
			got, err := Command(s.Addr, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", g.Name)
			if err == nil && got != host+"\n"+port {
				err = fmt.Errorf("it is still %q", got)
			}
			return err
		})
	}
	Eventually(g.t, "the replica is a master", func() error { return g.Replica.reports("replication", "role:master") })
	for _, s := range g.Sentinels {
		Eventually(g.t, "the Sentinels talk to the new master", func() error { return g.talks(s) })
	}
	g.Master, g.Replica = g.Replica, g.Master
}

// talks tells whether a Sentinel has heard from its master since it took that for one. Until then it may take it for dead,
// and have the former master, should that be back by then, take over again.
func (g *Group) talks(sentinel *Server) error {
	fields := strings.Split(sentinel.Do("SENTINEL", "MASTER", g.Name), "\n")
	state := map[string]string{}
	for i := 0; i+1 < len(fields); i += 2 {
		state[fields[i]] = fields[i+1]
	}
	ago, err := strconv.Atoi(state["info-refresh"]) // ms; since 1970 if it never was
	if err != nil || ago > 1_000_000 || state["flags"] != "master" {
		return fmt.Errorf("it is %q, heard of %q ms ago", state["flags"], state["info-refresh"])
	}
	return nil
}

// Failover has the Sentinels change the parts of the two, as an operator may, and waits until they have. It asks again
// where they give up, as they do while they have not heard of the replica for a while.
func (g *Group) Failover() {
	g.t.Helper()
	leader := g.Sentinels[0]
	master := func() string { return leader.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", g.Name) }
	before := master()
	Eventually(g.t, "the Sentinels begin a failover", func() error {
		if strings.Contains(leader.Do("SENTINEL", "MASTER", g.Name), "failover_in_progress") {
			return errors.New("it has not come to its end")
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
	Eventually(g.t, "the former master is a replica", func() error { return g.Replica.reports("replication", "role:slave") })
	g.Replica.awaitLink()
}
