package sessiontest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const slots = 16384

// Cluster is a real Redis Cluster of three masters, each with a share of the slots, and of the replicas that were added.
type Cluster struct {
	Nodes []*Server // the first masters

	t testing.TB
}

// StartCluster starts three masters, with args as further options, and waits until they agree. Like StartRedis, it needs
// redis-server.
func StartCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	for range 3 {
		c.Nodes = append(c.Nodes, newNode(t, args))
	}
	for i, node := range c.Nodes {
		first, last := i*slots/len(c.Nodes), (i+1)*slots/len(c.Nodes)-1
		node.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last))
		node.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	}
	for _, node := range c.Nodes[1:] {
		c.Nodes[0].meet(node)
	}
	for _, node := range c.Nodes {
		c.awaitComplete(node)
	}
	return c
}

func newNode(t testing.TB, args []string) *Server {
	t.Helper()
	bus := freePort(t)
	cluster := []string{"--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "2000"}
	node := StartRedis(t, append(cluster, args...)...)
	node.bus = bus
	return node
}

// meet introduces another node to the server.
func (s *Server) meet(node *Server) {
	s.t.Helper()
	s.Do("CLUSTER", "MEET", host, node.port, node.bus)
}

// AddReplica starts a replica of a master. It waits until the replica has caught up and all masters know it.
func (c *Cluster) AddReplica(master *Server) *Server {
	c.t.Helper()
	node := newNode(c.t, nil)
	master.meet(node)
	id := master.Do("CLUSTER", "MYID")
	Eventually(c.t, "the node may follow its master", func() error {
		return second(Command(node.Addr, "CLUSTER", "REPLICATE", id))
	})
	node.awaitLink()
	own := node.Do("CLUSTER", "MYID")
	for _, n := range c.Nodes {
		n.await([]string{"CLUSTER", "REPLICAS", id}, own)
	}
	// A replica that does not know its master's slots takes none over, and one that knows too few masters gets no votes.
	c.awaitComplete(node)
	return node
}

// AwaitMaster waits until a replica has replaced its master.
func (c *Cluster) AwaitMaster(replica *Server) {
	c.t.Helper()
	replica.await(replication, "role:master")
	c.awaitComplete(replica)
}

// awaitComplete waits until a node knows the masters of all slots.
func (c *Cluster) awaitComplete(node *Server) {
	c.t.Helper()
	size := fmt.Sprint("cluster_size:", len(c.Nodes))
	node.await([]string{"CLUSTER", "INFO"}, "cluster_state:ok", fmt.Sprint("cluster_slots_ok:", slots), size)
}

// Addrs returns the addresses of the first masters.
func (c *Cluster) Addrs() []string { return addrs(c.Nodes) }

func addrs(servers []*Server) []string {
	all := make([]string, len(servers))
	for i, s := range servers {
		all[i] = s.Addr
	}
	return all
}

// Move is a slot that is moving from one master to another.
type Move struct {
	slot     string
	from, to *Server
}

// MoveSlot begins to move the slot of a key to another master. Until End, the slot's keys may be on either.
func (c *Cluster) MoveSlot(key string) *Move {
	c.t.Helper()
	from := slices.IndexFunc(c.Nodes, func(n *Server) bool {
		return second(Command(n.Addr, "EXISTS", key)) == nil // the others refuse with MOVED
	})
	if from < 0 {
		c.t.Fatalf("no node has key %s", key)
	}
	m := &Move{slot: c.Nodes[0].Do("CLUSTER", "KEYSLOT", key), from: c.Nodes[from], to: c.Nodes[(from+1)%len(c.Nodes)]}
	m.to.Do("CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.from.Do("CLUSTER", "MYID"))
	m.from.Do("CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.to.Do("CLUSTER", "MYID"))
	return m
}

// Key moves one key.
func (m *Move) Key(key string) {
	m.to.t.Helper()
	m.from.Do("MIGRATE", host, m.to.port, key, "0", "5000")
}

// End moves the remaining keys, and assigns the slot to its new master.
func (m *Move) End() {
	m.to.t.Helper()
	for {
		keys := m.from.Do("CLUSTER", "GETKEYSINSLOT", m.slot, "10")
		if keys == "" {
			break
		}
		for _, key := range strings.Split(keys, "\n") {
			m.Key(key)
		}
	}
	id := m.to.Do("CLUSTER", "MYID")
	m.to.Do("CLUSTER", "SETSLOT", m.slot, "NODE", id)
	m.from.Do("CLUSTER", "SETSLOT", m.slot, "NODE", id)
}

// StartSentinel starts a Sentinel that watches master under the given name. quorum is the number of Sentinels that must agree
// that the master is down; lines are added to the configuration. Like StartRedis, it needs redis-server.
func StartSentinel(t testing.TB, name string, master *Server, quorum int, lines ...string) *Server {
	t.Helper()
	s := newServer(t)
	config := append([]string{
		"port " + s.port, "bind " + host, "dir " + s.dir,
		fmt.Sprintf("sentinel monitor %s %s %s %d", name, host, master.port, quorum),
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
	g := &Group{Name: name, Master: StartRedis(t), Replica: StartRedis(t), t: t}
	g.Replica.Follow(g.Master)
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
	for _, s := range g.Sentinels {
		s.await([]string{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", g.Name}, host+"\n"+g.Replica.port)
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
