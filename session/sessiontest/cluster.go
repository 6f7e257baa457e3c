package sessiontest

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
)

const slots = 16384

// Cluster is a real Redis Cluster of the test's own: masters only, each with a share of the slots.
type Cluster struct{ Nodes []*Server }

// StartCluster starts three masters and waits until they agree. As StartRedis, it needs redis-server.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{}
	var buses []string
	for range 3 {
		bus := freePort(t)
		node := newServer(t, durable...)
		node.args = append(node.args, "--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "2000")
		node.Start()
		c.Nodes, buses = append(c.Nodes, node), append(buses, bus)
	}
	c.assign(t)
	c.meet(t, buses)
	for _, node := range c.Nodes {
		Eventually(t, "the cluster is complete", func() error { return complete(node.Addr, len(c.Nodes)) })
	}
	return c
}

// Addrs is where the nodes are.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		addrs[i] = n.Addr
	}
	return addrs
}

func (c *Cluster) assign(t testing.TB) {
	t.Helper()
	for i, node := range c.Nodes {
		first, last := i*slots/len(c.Nodes), (i+1)*slots/len(c.Nodes)-1
		_, err := Command(node.Addr, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last))
		ok(t, err)
		_, err = Command(node.Addr, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		ok(t, err)
	}
}

func (c *Cluster) meet(t testing.TB, buses []string) {
	t.Helper()
	for i, node := range c.Nodes[1:] {
		host, port, err := net.SplitHostPort(node.Addr)
		ok(t, err)
		_, err = Command(c.Nodes[0].Addr, "CLUSTER", "MEET", host, port, buses[i+1])
		ok(t, err)
	}
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
