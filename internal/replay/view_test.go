package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestMessagesThatAreAlike: a view without a summary has the newest of them.
func TestMessagesThatAreAlike(t *testing.T) {
	f := func(sent, forwarded string, want ...int) {
		t.Helper()
		was, _ := history(t, sent)
		is, _ := history(t, forwarded)
		v, err := LayOver(was, is)
		if err != nil {
			t.Errorf("%s: %v", forwarded, err)
			return
		}
		if err := v.Check(); err != nil {
			t.Errorf("%s: %v", forwarded, err)
		}
		if !slices.Equal(v.from, want) {
			t.Errorf("%s: mapped to %v, want %v", forwarded, v.from, want)
		}
	}
	f("s u g u g u g u", "s u g u g u g u", 0, 1, 2, 3, 4, 5, 6, 7)
	f("s u g g2 u g u g u", "s u g u", 0, 1, 2, 8)
	f("s uA gA uB gA uC gA uC", "s uA gA uC", 0, 1, 2, 7)
	f("s uA aX oX uB gA uC aX oX", "s uA uC aX oX", 0, 1, 6, 7, 8)
	f("s uA gA uB gA uC gA uC", "s uA [x] gA uC", 0, 1, -1, 6, 7)
	f("s uA gA uB gA", "s uA gA uB gA", 0, 1, 2, 3, 4)
}

// TestResultsWithoutWhatIsShown: lines that an earlier forwarded result has may be left out, and no others.
func TestResultsWithoutWhatIsShown(t *testing.T) {
	body := func(results ...string) []byte {
		messages := []any{map[string]any{"role": "user", "content": "go"}}
		for i, text := range results {
			call := map[string]any{"id": fmt.Sprint("c", i), "type": "function", "function": map[string]any{"name": "f", "arguments": "{}"}}
			messages = append(messages, map[string]any{"role": "assistant", "tool_calls": []any{call}},
				map[string]any{"role": "tool", "tool_call_id": fmt.Sprint("c", i), "content": text})
		}
		out, err := json.Marshal(map[string]any{"model": "m", "messages": messages})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	lines := strings.Repeat("a line that is long enough to matter\n", 3)
	note := func(n int, call string) string {
		return fmt.Sprintf("[%d lines left out here, from \"a line\" on: they stand unchanged in the result of %s above]", n, call)
	}
	sent := body("\x1b[1mone\x1b[0m\n"+lines, "two\n"+lines+"end")
	f := func(forwarded []byte, good bool) {
		t.Helper()
		if _, err := LayOver(sent, forwarded); (err == nil) != good {
			t.Errorf("%s: %v", forwarded, err)
		}
	}
	f(sent, true)
	f(body("one\n"+lines, "two\n"+lines+"end"), true)
	f(body("one\n"+lines, "two\n"+note(3, "c0")+"\nend"), true)
	f(body("one\n"+lines, "two\n"+note(2, "c0")+"\nend"), false)
	f(body("one\n"+lines, "two\n"+note(4, "c0")+"\nend"), false)
	f(body("one\n"+lines, "two\n"+note(3, "c1")+"\nend"), false)
	f(body("one\n"+lines, "two\n"+note(3, "c9")+"\nend"), false)
	f(body("<MASKED>", "two\n"+note(3, "c0")+"\nend"), false)
	f(body("one\n"+lines, "two\n"+note(3, "c0")), false)
}
