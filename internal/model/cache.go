package model

import (
	"strconv"
	"strings"
	"time"
)

// Cache is how a provider keeps idle prefixes in its prompt cache.
type Cache struct {
	Life  time.Duration // after which none is taken to be there
	Asked bool          // a request may ask for another one
}

// cached is what the provider says of models whose folded name has a part.
type cached struct {
	part         string
	cache        Cache
	seen, source string
}

// caches are what providers say, by a part of the model's folded name. What is not listed says nothing, or what OpenAI said: 5 to 10 minutes,
// up to an hour when it is quiet.
func caches() []cached {
	return []cached{
		{"claude", Cache{5 * time.Minute, true}, "2026-11-22", "docs.claude.com/en/docs/build-with-claude/prompt-caching"},
		{"deepseek", Cache{48 * time.Hour, false}, "2026-11-22", "api-docs.deepseek.com/guides/kv_cache: hours to days"},
		{newGPT, Cache{30 * time.Minute, false}, "2026-11-25", "community.openai.com/t/1387096: ttl 30m, and 24h is taken and means nothing"},
		{"gpt", Cache{time.Hour, true}, "2026-11-25", "learn.microsoft.com/azure/foundry/openai/how-to/prompt-caching: 24h if asked for"},
		{"", Cache{time.Hour, false}, "2026-11-22", "platform.openai.com/docs/guides/prompt-caching"},
	}
}

// newGPT stands for OpenAI's models from GPT-5.6 on.
const newGPT = "gpt-5-6+"

// CacheOf is how the provider of a model keeps prefixes.
func CacheOf(name string) (c Cache) {
	name = fold(name)
	for _, known := range caches() {
		if known.part == newGPT && sinceGPT56(name) || known.part != newGPT && strings.Contains(name, known.part) {
			return known.cache
		}
	}
	return c
}

// sinceGPT56 reports whether a folded name is that of GPT-5.6 or a later one.
func sinceGPT56(name string) bool {
	version, is := strings.CutPrefix(name, "gpt-")
	if !is {
		return false
	}
	parts := strings.SplitN(version+"-", "-", 3)
	major, err := strconv.Atoi(parts[0])
	minor, _ := strconv.Atoi(parts[1]) // gpt-6-sol has none: 0
	return err == nil && (major > 5 || major == 5 && minor >= 6 && minor < 100)
}
