package model

import (
	"strings"
	"time"
)

// CacheLife is how long, at most, a provider keeps an idle prefix in its prompt cache. Looked up on 2026-11-22:
//   - Anthropic: 5 minutes, unless a request pays for an hour (docs.claude.com/en/docs/build-with-claude/prompt-caching);
//   - DeepSeek: hours to days (api-docs.deepseek.com/guides/kv_cache);
//   - OpenAI: 5 to 10 minutes, up to an hour when it is quiet (platform.openai.com/docs/guides/prompt-caching); others say nothing, or
//     the same.
func CacheLife(name string) time.Duration {
	switch name = fold(name); {
	case strings.Contains(name, "claude"):
		return 5 * time.Minute
	case strings.Contains(name, "deepseek"):
		return 48 * time.Hour
	}
	return time.Hour
}
