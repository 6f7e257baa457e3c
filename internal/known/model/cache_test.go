package model_test

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
)

func TestCacheOf(t *testing.T) {
	for name, want := range map[string]model.Cache{
		"claude-opus-5-5": {5 * time.Minute, true}, "us.anthropic.claude-sonnet-4-20250514-v1:0": {5 * time.Minute, true},
		"gpt-4o": {time.Hour, true}, "gpt-4o-2024-08-06": {time.Hour, true}, "gpt-5": {time.Hour, true}, "gpt-5.5": {time.Hour, true},
		"gpt-5-2025-08-07": {time.Hour, true}, "gpt-5.6": {30 * time.Minute, false}, "openai/gpt-5.6-sol": {30 * time.Minute, false},
		"gpt-6.2-sol": {30 * time.Minute, false}, "gpt-6-sol": {30 * time.Minute, false}, "deepseek-v4-pro": {48 * time.Hour, false},
		"gpt-oss-120b": {time.Hour, true}, "gemini-3-pro": {time.Hour, false}, "": {time.Hour, false},
	} {
		if got := model.CacheOf(name); got != want {
			t.Errorf("%q: %+v, want %+v", name, got, want)
		}
	}
}
