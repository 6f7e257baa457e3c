package model

import (
	"regexp"
	"time"
)

// Cache describes how long a provider keeps idle prefixes in its prompt cache.
type Cache struct {
	Life  time.Duration // how long an idle prefix is assumed to stay in the cache
	Asked bool          // a request may ask for another lifetime
}

// caches lists what providers document. The first entry whose pattern matches a folded name applies. The last one, for all other models, is
// what OpenAI once documented: 5 to 10 minutes, and up to an hour at quiet times.
var caches = []struct {
	name         *regexp.Regexp
	cache        Cache
	seen, source string
}{
	{regexp.MustCompile("claude"), Cache{5 * time.Minute, true}, "2026-11-22", "docs.claude.com/en/docs/build-with-claude/prompt-caching"},
	{regexp.MustCompile("deepseek"), Cache{48 * time.Hour, false}, "2026-11-22", "api-docs.deepseek.com/guides/kv_cache: hours to days"},
	{sinceGPT56, Cache{30 * time.Minute, false}, "2026-11-25", "community.openai.com/t/1387096: ttl 30m, and 24h is taken and means nothing"},
	{regexp.MustCompile("gpt"), Cache{time.Hour, true}, "2026-11-25", "learn.microsoft.com/azure/foundry/openai/how-to/prompt-caching: 24h if asked for"},
	{regexp.MustCompile(""), Cache{time.Hour, false}, "2026-11-22", "platform.openai.com/docs/guides/prompt-caching"},
}

// sinceGPT56 matches GPT-5.6 and later models, such as gpt-6-sol, but not gpt-5-2025-08-07.
var sinceGPT56 = regexp.MustCompile(`^gpt-(?:5-(?:0?[6-9]|[1-9]\d)|[6-9]|[1-9]\d+)(?:-|$)`)

// CacheOf returns how the provider of a model keeps prefixes.
func CacheOf(name string) Cache {
	name = fold(name)
	for _, c := range caches {
		if c.name.MatchString(name) {
			return c.cache
		}
	}
	return Cache{}
}
