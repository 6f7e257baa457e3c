package fakeupstream

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// cacheMinimum and cacheStep are OpenAI's: a prompt is cached from 1024 tokens on, in steps of 128.
	cacheMinimum = 1024
	cacheStep    = 128
	// cacheCapacity bounds the memory: so many hashes of 32 bytes.
	cacheCapacity = 1 << 16
)

// prefixHash names a prefix: the owner, the tools and the first messages, byte for byte.
type prefixHash [sha256.Size]byte

// prefixCache simulates the prompt cache: it remembers the newest prefixes that were sent. It is safe for concurrent use.
type prefixCache struct {
	mu    sync.Mutex
	known *simplelru.LRU[prefixHash, struct{}]
}

func newCache(capacity int) *prefixCache {
	known, _ := simplelru.NewLRU[prefixHash, struct{}](capacity, nil) // it fails for no capacity only
	return &prefixCache{known: known}
}

// prompt is what the cache sees of a request.
type prompt struct {
	owner    string // credential: nothing is shared across it
	model    string
	tools    json.RawMessage
	form     json.RawMessage // of the answer
	messages []json.RawMessage
}

// use returns how many tokens of the prompt were sent before, and remembers all of it. A matching prefix is rounded down to what
// is reported.
func (c *prefixCache) use(p prompt, count func([]byte) int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	head := sha256.Sum256(mustJSON([]string{p.owner, p.model, string(p.tools), string(p.form)}))
	tokens, hit := 0, true
	for i, m := range p.messages {
		head = sha256.Sum256(append(head[:], m...))
		if _, known := c.known.Get(head); !known {
			c.known.Add(head, struct{}{})
			hit = false
		}
		if hit {
			tokens += count(m)
		}
		if hit && i == 0 && given(p.tools) {
			tokens += count(p.tools)
		}
	}
	if tokens < cacheMinimum {
		return 0
	}
	return tokens - tokens%cacheStep
}

// drop forgets everything, as a cache does that was not used for its time to live.
func (c *prefixCache) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.Purge()
}
