package fakeupstream

import (
	"crypto/sha256"
	"encoding/json"
	"sync"
)

const (
	// cacheMinimum and cacheStep are OpenAI's: a prompt is cached from 1024 tokens on, in steps of 128.
	cacheMinimum = 1024
	cacheStep    = 128
	// cacheGeneration bounds the memory: at most two generations of this many 32-byte hashes.
	cacheGeneration = 1 << 15
)

// prefixHash names a prefix: the owner, the tools and the first messages, byte for byte.
type prefixHash [sha256.Size]byte

// prefixCache simulates the prompt cache: it remembers the prefixes that were sent. The zero value is empty and ready;
// it is safe for concurrent use.
type prefixCache struct {
	mu       sync.Mutex
	young    map[prefixHash]struct{}
	old      map[prefixHash]struct{}
	capacity int // of a generation; 0 is cacheGeneration
}

// prompt is what the cache sees of a request.
type prompt struct {
	owner    string // credential: nothing is shared across it
	model    string
	tools    json.RawMessage
	form     json.RawMessage // of the answer
	messages []json.RawMessage
}

// use returns how many tokens of the prompt were sent before, and remembers all of it.
func (c *prefixCache) use(p prompt, count func([]byte) int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	head := sha256.Sum256(mustJSON([]string{p.owner, p.model, string(p.tools), string(p.form)}))
	tokens, hit := 0, true
	for i, m := range p.messages {
		head = sha256.Sum256(append(head[:], m...))
		hit = c.touch(head) && hit
		if hit {
			tokens += count(m)
		}
		if hit && i == 0 && given(p.tools) {
			tokens += count(p.tools)
		}
	}
	return cachedTokens(tokens)
}

// cachedTokens rounds a matching prefix down to what is reported.
func cachedTokens(matching int) int {
	if matching < cacheMinimum {
		return 0
	}
	return matching - matching%cacheStep
}

// touch reports whether the prefix is known, and makes it young.
func (c *prefixCache) touch(h prefixHash) bool {
	if _, ok := c.young[h]; ok {
		return true
	}
	_, known := c.old[h]
	if c.young == nil || len(c.young) >= c.limit() {
		c.old, c.young = c.young, map[prefixHash]struct{}{}
	}
	c.young[h] = struct{}{}
	return known
}

func (c *prefixCache) limit() int {
	if c.capacity > 0 {
		return c.capacity
	}
	return cacheGeneration
}

// drop forgets everything, as a cache does that was not used for its time to live.
func (c *prefixCache) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.young, c.old = nil, nil
}
