package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// TestSessionSumsUpSubAgents: the cost of each condensation is reported, with the prompt that made it, and the sum of a session
// includes its sub-agents.
func TestSessionSumsUpSubAgents(t *testing.T) {
	s := newSetting(t, fakeupstream.Options{})
	p := serve(t, "--config", s.config(t, embedded(newStore(t))))
	agent := func(key, parent string) string {
		header := http.Header{"X-Session-Id": {key}}
		if parent != "" {
			header.Set("X-Parent-Session-Id", parent)
		}
		var messages []json.RawMessage
		for n := range 2*maxSize + 1 {
			role := []string{"user", "assistant"}[n%2]
			messages = append(messages, encode(map[string]string{"role": role, "content": fmt.Sprintf("%s %s %d: %s", role, key, n, strings.Repeat("more of it ", 60))}))
		}
		a := send(t, p, body(messages), header)
		ok(t, a.finish())
		if a.Header.Get("X-Dewpoint-Condensed") == "" {
			t.Fatalf("%s was not condensed", key)
		}
		return a.Header.Get("X-Dewpoint-Session")
	}
	main := agent("main", "")
	if sub := agent("sub", "main"); sub != main {
		t.Fatalf("the sub-agent is in session %s, its parent in %s", sub, main)
	}
	var sum struct {
		Condensations, Calls int
		Seconds              float64
		Own                  struct{ Input, Output int } `json:"own_calls"`
		Threads              []struct{ Thread string }
	}
	ok(t, json.Unmarshal(p.administer(http.MethodGet, "/sessions/"+main+"/savings", http.StatusOK), &sum))
	known, err := os.ReadFile("../../../condense/testdata/prompts.list")
	ok(t, err)
	condensations, calls, input := 0, 0, 0
	for _, thread := range sum.Threads {
		var list struct {
			Condensations []struct {
				Reason, Prompt, Condenser string
				Calls                     int
				Seconds                   float64
				Usage                     struct{ Input int }
			}
		}
		ok(t, json.Unmarshal(p.administer(http.MethodGet, "/sessions/"+main+"/threads/"+thread.Thread+"/condensations", http.StatusOK), &list))
		for _, c := range list.Condensations {
			condensations, calls, input = condensations+1, calls+c.Calls, input+c.Usage.Input
			if c.Reason == "" || c.Condenser != "llm" || c.Calls < 1 || c.Seconds <= 0 || c.Prompt == "" || !strings.Contains(string(known), c.Prompt+" llm ") {
				t.Errorf("a condensation is told of as %+v", c)
			}
		}
	}
	if len(sum.Threads) != 2 || condensations < 2 || sum.Condensations != condensations || sum.Calls != calls || sum.Own.Input != input || sum.Seconds <= 0 {
		t.Errorf("the session has %+v, its condensations %d, %d calls, %d tokens", sum, condensations, calls, input)
	}
}
