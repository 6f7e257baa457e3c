package sessiontest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

const slots = 16384

// Cluster is a real Redis Cluster of the test's own: masters, each with a share of the slots, and the replicas that were
// added.
type Cluster struct {
	Nodes []*Server // the masters it began with

	t testing.TB
}

// StartCluster starts three masters and waits until they agree. args are further options of each. As StartRedis, it needs
// redis-server.
func StartCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	var buses []string
	for range 3 {
		node, bus := newNode(t, args)
		c.Nodes, buses = append(c.Nodes, node), append(buses, bus)
	}
	for i, node := range c.Nodes {
		first, last := i*slots/len(c.Nodes), (i+1)*slots/len(c.Nodes)-1
		node.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last))
		node.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	}
	for i, node := range c.Nodes[1:] {
		c.Nodes[0].meet(node, buses[i+1])
	}
	for _, node := range c.Nodes {
		Eventually(t, "the cluster is complete", func() error { return complete(node.Addr, len(c.Nodes)) })
	}
	return c
}

func newNode(t testing.TB, args []string) (node *Server, bus string) {
	t.Helper()
	_, bus = hostPort(t, freeAddr(t))
	cluster := []string{"--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "2000"}
	return StartRedis(t, append(cluster, args...)...), bus
}

// meet tells the server of another node.
func (s *Server) meet(node *Server, bus string) {
	s.t.Helper()
	host, port := node.hostPort()
	s.Do("CLUSTER", "MEET", host, port, bus)
}

// AddReplica starts a replica of a master, and waits until it has caught up and all know of it.
func (c *Cluster) AddReplica(master *Server) *Server {
	c.t.Helper()
	node, bus := newNode(c.t, nil)
	master.meet(node, bus)
	id := master.Do("CLUSTER", "MYID")
	Eventually(c.t, "the node may follow its master", func() error {
		_, err := Command(node.Addr, "CLUSTER", "REPLICATE", id)
		return err
	})
	node.awaitLink()
	own := node.Do("CLUSTER", "MYID")
	for _, n := range c.Nodes {
		Eventually(c.t, "the cluster knows of the replica", func() error {
			replicas, err := Command(n.Addr, "CLUSTER", "REPLICAS", id)
			if err == nil && !strings.Contains(replicas, own) {
				err = fmt.Errorf("the replicas are %q", replicas)
			}
			return err
		})
	}
	// A replica that has not heard of its master's slots takes none over, and one that knows too few masters gets no votes.
	Eventually(c.t, "the replica knows the cluster", func() error { return complete(node.Addr, len(c.Nodes)) })
	return node
}

// AwaitMaster waits until a replica has taken its master's place.
func (c *Cluster) AwaitMaster(replica *Server) {
	c.t.Helper()
	Eventually(c.t, "the replica is a master", func() error { return replica.reports("replication", "role:master") })
	Eventually(c.t, "the cluster is complete", func() error { return complete(replica.Addr, len(c.Nodes)) })
}

// Addrs is where the nodes are.
func (c *Cluster) Addrs() []string { return addrs(c.Nodes) }

func addrs(servers []*Server) []string {
	all := make([]string, len(servers))
	for i, s := range servers {
		all[i] = s.Addr
	}
	return all
}

// complete reports what the node at addr still misses.
func complete(addr string, nodes int) error {
	info, err := Command(addr, "CLUSTER", "INFO")
	if err != nil {
		return err
	}
	for _, line := range []string{"cluster_state:ok", fmt.Sprintf("cluster_slots_ok:%d", slots), fmt.Sprintf("cluster_size:%d", nodes)} {
		if !strings.Contains(info, line) {
			return fmt.Errorf("not yet %s", line)
		}
	}
	return nil
}
