package sessiontest

import (
	"net"
	"slices"
	"strconv"
	"strings"
)

// Move is a slot on its way from one master to another.
type Move struct {
	Slot     string
	From, To *Server

	cluster *Cluster
}

// MoveSlot begins to move the slot of a key to another master. Until End, its keys are on either.
func (c *Cluster) MoveSlot(key string) *Move {
	c.t.Helper()
	m := &Move{Slot: c.Nodes[0].Do("CLUSTER", "KEYSLOT", key), cluster: c}
	m.From = c.owner(m.Slot)
	m.To = c.Nodes[(slices.Index(c.Nodes, m.From)+1)%len(c.Nodes)]
	m.To.Do("CLUSTER", "SETSLOT", m.Slot, "IMPORTING", m.From.Do("CLUSTER", "MYID"))
	m.From.Do("CLUSTER", "SETSLOT", m.Slot, "MIGRATING", m.To.Do("CLUSTER", "MYID"))
	return m
}

// owner is the master that keys of the slot are on: the one that does not send others away.
func (c *Cluster) owner(slot string) *Server {
	c.t.Helper()
	for _, n := range c.Nodes {
		id := n.Do("CLUSTER", "MYID")
		for line := range strings.Lines(n.Do("CLUSTER", "NODES")) {
			fields := strings.Fields(line)
			if len(fields) > 8 && fields[0] == id && holds(fields[8:], slot) {
				return n
			}
		}
	}
	c.t.Fatalf("no node has slot %s", slot)
	return nil
}

func holds(ranges []string, slot string) bool {
	n, err := strconv.Atoi(slot)
	return err == nil && slices.ContainsFunc(ranges, func(r string) bool {
		first, last, isRange := strings.Cut(r, "-")
		if !isRange {
			last = first
		}
		low, lowErr := strconv.Atoi(first)
		high, highErr := strconv.Atoi(last)
		return lowErr == nil && highErr == nil && low <= n && n <= high
	})
}

// Key moves one key.
func (m *Move) Key(key string) {
	m.cluster.t.Helper()
	host, port, err := net.SplitHostPort(m.To.Addr)
	ok(m.cluster.t, err)
	m.From.Do("MIGRATE", host, port, key, "0", "5000")
}

// End moves the keys that are left, and tells all nodes who has the slot.
func (m *Move) End() {
	m.cluster.t.Helper()
	for {
		keys := m.From.Do("CLUSTER", "GETKEYSINSLOT", m.Slot, "10")
		if keys == "" {
			break
		}
		for _, key := range strings.Split(keys, "\n") {
			m.Key(key)
		}
	}
	id := m.To.Do("CLUSTER", "MYID")
	m.To.Do("CLUSTER", "SETSLOT", m.Slot, "NODE", id)
	m.From.Do("CLUSTER", "SETSLOT", m.Slot, "NODE", id)
}
