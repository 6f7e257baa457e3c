package messages_test

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// TestCacheTTL checks that the shortest mark counts, in OpenAI's APIs too, and that marks in tool inputs and schemas do not.
func TestCacheTTL(t *testing.T) {
	d := messages.New(split.Options{})
	for body, want := range map[string]time.Duration{
		`{"messages":[{"role":"user","content":"cache_control"}]}`:                                                                     0,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}]}`:                   5 * time.Minute,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}`:        time.Hour,
		`{"system":[{"type":"text","text":"s","cache_control":{"ttl":"1h"}}],"messages":[{"content":[{"cache_control":{}}]}]}`:         5 * time.Minute,
		`{"system":[{"cache_control":{"ttl":"1h"}}],"messages":[{"content":[{"type":"tool_use","input":{"cache_control":{}}}]}]}`:      time.Hour,
		`{"cache_control":{"type":"ephemeral","ttl": "1h"},"messages":[{"role":"user","content":"\"cache_control\":{\"ttl\":null}"}]}`: time.Hour,
	} {
		if got := d.CacheTTL([]byte(body)); got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
	for body, want := range map[string]time.Duration{
		`{"prompt_cache_retention":"24h"}`: 24 * time.Hour, `{"prompt_cache_retention":"in_memory"}`: 0, `{"input":"prompt_cache_retention 24h"}`: 0,
		`{"messages":[{"content":[{"cache_control":{"type":"ephemeral","ttl":"1h"}}]}],"tools":[{"function":{"parameters":{"cache_control":{}}}}]}`: time.Hour,
		`{"messages":[{"content":[{"cache_control":{"ttl":"1h"}}]},{"content":[{"cache_control":{"type":"ephemeral"}}]}]}`:                          0,
		`{"input":[{"content":[{"cache_control":{}}]}],"tools":[{"cache_control":{"ttl":"1h"}}]}`:                                                   0,
		`{"input":[{"content":[{"cache_control":{"ttl":"1h"}}]}],"tools":[{"cache_control":{"ttl":"1h"}}]}`:                                         time.Hour,
	} {
		if got := (split.OpenAI{}).CacheTTL([]byte(body)); got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
}
