package model

import (
	"strconv"
	"strings"
	"time"
)

// Cache describes how long a provider keeps idle prefixes in its prompt cache.
type Cache struct {
	Life  time.Duration // an idle prefix is assumed to be gone after this
	Asked bool          // a request may ask for another lifetime
}

// cacheEntry is what a provider documents for models whose folded name contains part.
type cacheEntry struct {
	part         string
	cache        Cache
	seen, source string
}

// cacheEntries lists what providers document. The first entry that matches applies. The last one, for all other models, is what
// OpenAI once documented: 5 to 10 minutes, and up to an hour at quiet times.
func cacheEntries() []cacheEntry {
	return []cacheEntry{
		{"claude", Cache{5 * time.Minute, true}, "2026-11-22", "docs.claude.com/en/docs/build-with-claude/prompt-caching"},
		{"deepseek", Cache{48 * time.Hour, false}, "2026-11-22", "api-docs.deepseek.com/guides/kv_cache: hours to days"},
		{newGPT, Cache{30 * time.Minute, false}, "2026-11-25", "community.openai.com/t/1387096: ttl 30m, and 24h is taken and means nothing"},
		{"gpt", Cache{time.Hour, true}, "2026-11-25", "learn.microsoft.com/azure/foundry/openai/how-to/prompt-caching: 24h if asked for"},
		{"", Cache{time.Hour, false}, "2026-11-22", "platform.openai.com/docs/guides/prompt-caching"},
	}
}

// newGPT stands for OpenAI's models since GPT-5.6.
const newGPT = "gpt-5-6+"

// CacheOf returns how the provider of a model keeps prefixes.
func CacheOf(name string) Cache {
	name = fold(name)
	for _, e := range cacheEntries() {
		if e.part == newGPT && sinceGPT56(name) || e.part != newGPT && strings.Contains(name, e.part) {
			return e.cache
		}
	}
	return Cache{}
}

// sinceGPT56 reports whether a folded name is that of GPT-5.6 or later.
func sinceGPT56(name string) bool {
	version, ok := strings.CutPrefix(name, "gpt-")
	if !ok {
		return false
	}
	parts := strings.SplitN(version+"-", "-", 3)
	major, err := strconv.Atoi(parts[0])
	minor, _ := strconv.Atoi(parts[1]) // gpt-6-sol has none: 0
	return err == nil && (major > 5 || major == 5 && minor >= 6 && minor < 100)
}
