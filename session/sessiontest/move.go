package sessiontest

import (
	"slices"
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
	m.From = c.owner(key)
	m.To = c.Nodes[(slices.Index(c.Nodes, m.From)+1)%len(c.Nodes)]
	m.To.Do("CLUSTER", "SETSLOT", m.Slot, "IMPORTING", m.From.Do("CLUSTER", "MYID"))
	m.From.Do("CLUSTER", "SETSLOT", m.Slot, "MIGRATING", m.To.Do("CLUSTER", "MYID"))
	return m
}

// owner is the master that a key is on: the one that does not send others away.
func (c *Cluster) owner(key string) *Server {
	c.t.Helper()
	for _, n := range c.Nodes {
		if _, err := Command(n.Addr, "EXISTS", key); err == nil {
			return n
		}
	}
	c.t.Fatalf("no node has key %s", key)
	return nil
}

// Key moves one key.
func (m *Move) Key(key string) {
	m.cluster.t.Helper()
	host, port := m.To.hostPort()
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
