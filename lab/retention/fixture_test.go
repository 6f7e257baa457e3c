package retention

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// wordCounter counts words, and one more for a message, so that figures can be worked out by hand.
type wordCounter struct{}

func (wordCounter) Count(text string) int { return len(strings.Fields(text)) }

func (w wordCounter) Message(c session.Content) int {
	n := 1 + w.Count(c.Text)
	for _, call := range c.Calls {
		n += w.Count(call.Arguments)
	}
	return n
}

func text(role, content string) json.RawMessage {
	return encoded(map[string]any{"role": role, "content": content})
}

// exchange is a call and its result.
func exchange(id, command, result string) []json.RawMessage {
	arguments := string(encoded(map[string]string{"command": command}))
	return []json.RawMessage{
		encoded(map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
			"id": id, "type": "function", "function": map[string]string{"name": "run", "arguments": arguments},
		}}}),
		encoded(map[string]any{"role": "tool", "tool_call_id": id, "content": result}),
	}
}

func encoded(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings can always be written
	}
	return raw
}

func recorded(messages ...[]json.RawMessage) replay.Run {
	out := replay.Run{Name: "test"}
	for _, m := range messages {
		out.Messages = append(out.Messages, m...)
	}
	return out
}

func opened(t testing.TB, r replay.Run) *run {
	t.Helper()
	out, err := newRun(r, wordCounter{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// long is a run of n exchanges, in which the agent comes back to files that it saw before.
func long(n int) replay.Run {
	r := recorded([]json.RawMessage{text("system", "You are an agent."), text("user", "Fix the bug in main.go, please.")})
	for i := range n {
		result := fmt.Sprintf("file src/mod%d/file%d.go has value_%d set to %d\n", i, i, i, 1000+i) + strings.Repeat("some more words of output\n", 4+i%5)
		r.Messages = append(r.Messages, exchange(fmt.Sprintf("call_%d", i), fmt.Sprintf("cat src/mod%d/file%d.go", i/2, i/2), result)...)
	}
	r.Final = text("assistant", "Done: value_0 and value_3 in src/mod1/file1.go are right.")
	return r
}
