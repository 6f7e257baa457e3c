package engine

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// countCache remembers token counts by content, so that a message is counted once and a request pays for its new messages
// only. It is a table without pointers, which costs the garbage collector nothing, and has no lock: a slot keeps its count
// and the exclusive or of that and the key, so that a slot of which two have written a half each is that of nobody
// (Hyatt and Mann, "A lock-less transposition table implementation for parallel search", 2002).
type countCache struct {
	place, name maphash.Seed // of the process: nobody can look for contents that collide
	slots       []countSlot
}

type countSlot struct{ mixed, count atomic.Uint64 }

const (
	countSlots = 1 << 16 // 1 MiB
	countWays  = 4       // slots that a key may be in
)

// countKey is a content's first slot, and its name there: 78 bits of hash.
type countKey struct {
	slot int
	name uint64
}

func newCountCache() *countCache {
	return &countCache{place: maphash.MakeSeed(), name: maphash.MakeSeed(), slots: make([]countSlot, countSlots)}
}

// key is the key of content in an encoding.
func (c *countCache) key(encoding string, content []byte) countKey {
	place := maphash.Bytes(c.place, content)
	return countKey{
		slot: int(place%(countSlots/countWays)) * countWays, //nolint:gosec // less than countSlots
		name: maphash.Bytes(c.name, content) ^ maphash.String(c.name, encoding) | 1,
	}
}

// message is the key of a message. Reasoning is counted, but is not a part of its digest; its size tells it.
func (c *countCache) message(encoding string, m *session.Message) countKey {
	key := c.key(encoding, m.Digest[:])
	key.name = (key.name + uint64(len(m.Raw))*0x9E3779B97F4A7C15) | 1 // the factor is Knuth's: sizes far apart
	return key
}

func (c *countCache) get(key countKey) (int, bool) {
	for i := range countWays {
		slot := &c.slots[key.slot+i]
		if n := slot.count.Load(); slot.mixed.Load()^n == key.name {
			return int(n), true //nolint:gosec // it was an int
		}
	}
	return 0, false
}

// put takes a free slot, or one that the name chooses.
func (c *countCache) put(key countKey, n int) {
	slot := &c.slots[key.slot+int(key.name>>1%countWays)] //nolint:gosec // less than countWays
	for i := range countWays {
		if free := &c.slots[key.slot+i]; free.mixed.Load() == 0 {
			slot = free
			break
		}
	}
	slot.count.Store(uint64(n)) //nolint:gosec // as it is read back
	slot.mixed.Store(key.name ^ uint64(n))
}

func (c *countCache) of(key countKey, count func() int) int {
	if n, ok := c.get(key); ok {
		return n
	}
	n := count()
	c.put(key, n)
	return n
}
