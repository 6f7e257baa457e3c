package model_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
)

func TestRatiosOf(t *testing.T) {
	for name, want := range map[string]model.Price{
		"claude-next":              {Input: 1, CachedInput: 0.1, CacheWrite: 1.25, Output: 5},
		"Qwen/Qwen3-Coder-30B-FP8": {Input: 1, CachedInput: 0.2, CacheWrite: 1, Output: 5},
		"moonshotai/kimi-k3":       {Input: 1, CachedInput: 0.2, CacheWrite: 1, Output: 5},
		"deepseek-v4-pro":          {Input: 1, CachedInput: 0.1, CacheWrite: 1, Output: 5},
		"my-own-model":             {Input: 1, CachedInput: 0.1, CacheWrite: 1, Output: 5},
	} {
		if got := model.RatiosOf(name); got != want {
			t.Errorf("%q: %+v, want %+v", name, got, want)
		}
	}
}
