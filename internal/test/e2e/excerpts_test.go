package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// TestExcerptsQuoteLinesThatSaySomething: of a file that a tool has printed with the numbers of its lines, neither tags, numbers and headings
// alone nor the placeholders of other content are quoted.
func TestExcerptsQuoteLinesThatSaySomething(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	file := writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
condenser: {type: excerpts, max_size: 10, min_tokens: 0}
shutdown: {delay: 0s, timeout: 1m}
`, s.url, embedded(newStore(t))))
	p := serve(t, "--config", file)
	messages := []any{map[string]any{"role": "user", "content": "Port the side bar."}}
	for n := range 6 {
		id := fmt.Sprintf("call_%d", n)
		printed := strings.Repeat("more of it\n", 60) + fmt.Sprintf("  58%d\t</side_bar%d>\n59%d\n  60%d\t## The side_bar%d\n61%d: fold_bar%d keeps the side_bar%d\n[tool_reference json]\n", n, n, n, n, n, n, n, n)
		messages = append(messages,
			map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"id": id, "type": "function", "function": map[string]string{"name": "read", "arguments": "{}"}}}},
			map[string]any{"role": "tool", "tool_call_id": id, "content": printed})
	}
	o := try(t, p, "/chat/completions", "bar", map[string]any{"model": "gpt-4o", "max_tokens": 100, "messages": messages})
	if o.Get("X-Dewpoint-Condensed") == "" {
		t.Fatalf("%v", o.Header)
	}
	excerpts := ""
	for _, r := range s.Upstream.Requests() {
		for _, m := range r.Messages {
			var message struct{ Content string }
			if json.Unmarshal(m, &message) == nil && strings.Contains(message.Content, "<dewpoint_excerpts>") {
				excerpts = message.Content
			}
		}
	}
	if !strings.Contains(excerpts, "fold_bar1 keeps the side_bar1") {
		t.Errorf("what says something is not quoted: %s", excerpts)
	}
	for _, noise := range []string{"</side_bar", "591", "## The", "tool_reference"} {
		if strings.Contains(excerpts, noise) {
			t.Errorf("%s is quoted: %s", noise, excerpts)
		}
	}
}
