package engine

import (
	"hash/maphash"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// countCache remembers token counts by content, so that a message is counted once and a request pays for its new messages
// only.
type countCache struct {
	first, second maphash.Seed // of the process: a client cannot look for contents that collide
	counts        *lru.Cache[countKey, int]
}

// countKey is 128 bits of hash.
type countKey struct{ first, second uint64 }

const countsKept = 1 << 15 // about 5 MB

func newCountCache() *countCache {
	return &countCache{first: maphash.MakeSeed(), second: maphash.MakeSeed(), counts: cache[countKey, int](countsKept)}
}

// key is the key of content in an encoding.
func (c *countCache) key(encoding string, content []byte) countKey {
	return countKey{maphash.Bytes(c.first, content), maphash.Bytes(c.second, content) ^ maphash.String(c.second, encoding)}
}

// message is the key of a message. Reasoning is counted, but is not a part of its digest; its size tells it.
func (c *countCache) message(encoding string, m *session.Message) countKey {
	key := c.key(encoding, m.Digest[:])
	key.second += uint64(len(m.Raw)) * 0x9E3779B97F4A7C15 // Knuth's factor: sizes far apart
	return key
}

func (c *countCache) get(key countKey) (int, bool) { return c.counts.Get(key) }

func (c *countCache) of(key countKey, count func() int) int {
	if n, ok := c.get(key); ok {
		return n
	}
	n := count()
	c.counts.Add(key, n)
	return n
}
