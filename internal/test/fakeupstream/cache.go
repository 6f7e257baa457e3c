package fakeupstream

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/dewpoint-proxy/dewpoint/internal/lru"
)

const (
	// OpenAI caches prompts of at least 1024 tokens, in steps of 128.
	cacheMinimum = 1024
	cacheStep    = 128
	// cacheCapacity bounds the number of prefixes, and so the memory: each is a hash of 32 bytes.
	cacheCapacity = 1 << 16
)

// prefixCache simulates the prompt cache with the newest prefixes. It is safe for concurrent use.
type prefixCache struct {
	mu    sync.Mutex
	known lru.Cache[[sha256.Size]byte, struct{}] // hashes of the owner, the model, the tools and the first messages, byte for byte
}

func newCache(capacity int) *prefixCache {
	known := lru.New[[sha256.Size]byte, struct{}](capacity)
	return &prefixCache{known: known}
}

// prompt has the parts of a request that count for the cache.
type prompt struct {
	owner    string // credential; the cache is not shared between owners
	model    string
	tools    value
	form     value // requested format of the answer
	messages []json.RawMessage
}

// use adds a prompt to the cache. It returns how many of its tokens were cached, rounded down to a multiple of cacheStep.
func (c *prefixCache) use(p prompt, count func([]byte) int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	head := sha256.Sum256(mustJSON([]string{p.owner, p.model, string(p.tools.raw), string(p.form.raw)}))
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
		if hit && i == 0 && p.tools.given() {
			tokens += count(p.tools.raw)
		}
	}
	if tokens < cacheMinimum {
		return 0
	}
	return tokens - tokens%cacheStep
}

// drop empties the cache, as if its time to live had passed.
func (c *prefixCache) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.Purge()
}
