package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// calls adds a tool call of the model, and its result.
func (s *speaker) calls(arguments, result string) {
	id := fmt.Sprintf("call_%d_0123456789", len(s.said))
	switch s.path {
	case "/responses":
		s.said = append(s.said, map[string]any{"type": "function_call", "call_id": id, "name": "status", "arguments": arguments},
			map[string]any{"type": "function_call_output", "call_id": id, "output": result})
	case "/messages":
		use := map[string]any{"type": "tool_use", "id": id, "name": "status", "input": json.RawMessage(arguments)}
		answer := map[string]any{"type": "tool_result", "tool_use_id": id, "content": result}
		s.said = append(s.said, map[string]any{"role": "assistant", "content": []any{use}}, map[string]any{"role": "user", "content": []any{answer}})
	default:
		call := map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "status", "arguments": arguments}}
		s.said = append(s.said, map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{call}},
			map[string]any{"role": "tool", "tool_call_id": id, "content": result})
	}
}

// sorted returns a message with its keys in order, since messages of the Messages API are assembled from pieces.
func sorted(t *testing.T, raw []byte) string {
	t.Helper()
	var v any
	ok(t, json.Unmarshal(raw, &v))
	text, err := json.Marshal(v)
	ok(t, err)
	return string(text)
}

// TestRepeatedCalls: in each protocol a model that repeats one call is told so once, and again after twice as many repetitions:
// at the same place, permanently, on another replica and after a restart. A call with a different result is not a repetition.
func TestRepeatedCalls(t *testing.T) {
	const three, six = "has been made 3 times", "has been made 6 times"
	spellings := [...]string{`{"job":7,"wait":true}`, `{ "wait": true, "job": 7 }`}
	for _, path := range []string{"/chat/completions", "/messages", "/responses"} {
		t.Run(path[1:], func(t *testing.T) {
			t.Parallel()
			redis, s := sessiontest.StartRedis(t), newSetting(t, fakeupstream.Options{})
			config := s.budgeted(t, inRedis(redis.Addr), "repeated_calls: {after: 3, then: tell}")
			pair := [2]*process{serve(t, "--config", config), serve(t, "--config", config)}
			c := &speaker{path: path}
			c.says("user", "Wait for the job.")
			before := c.ask(t, s.Upstream, pair[0])
			ask := func(p *process) string {
				t.Helper()
				body := c.ask(t, s.Upstream, p)
				for i, m := range list(t, before) {
					if got := list(t, body)[i]; sorted(t, got) != sorted(t, m) {
						t.Errorf("message %d was %s, and is %s", i, m, got)
					}
				}
				before = body
				return body
			}
			for n := 1; n <= 7; n++ {
				if n == 4 {
					pair[0].kill()
					pair[0] = serve(t, "--config", config)
				}
				c.calls(spellings[n%2], fmt.Sprintf("pending for %d ms", 37*n))
				body := ask(pair[n%2])
				if got, want := [2]int{strings.Count(body, three), strings.Count(body, six)}, [2]int{min(n/3, 1), n / 6}; got != want {
					t.Errorf("after %d calls there are %v notes, want %v: %s", n, got, want, body)
				}
				if again := ask(pair[(n+1)%2]); again != body {
					t.Errorf("the retry of call %d went as %s, first as %s", n, again, body)
				}
			}
			for _, word := range []string{"one", "two", "three", "four"} {
				c.calls(`{"next":true}`, "page "+word)
				ask(pair[0])
			}
			c.says("user", "Go on.")
			c.calls(spellings[0], "pending")
			if body := ask(pair[0]); strings.Count(body, "[Note: ") != 2 {
				t.Errorf("the last request went as %s", body)
			}
			pair[0].counted(`dewpoint_repeated_calls_total{tenant="default"} 2`)
			pair[1].counted(`dewpoint_repeated_calls_total{tenant="default"} 3`)
			pair[1].terminate()
			if log := fmt.Sprint(pair[1].log); !strings.Contains(log, `"repeated_calls":7`) || strings.Contains(log, `"repeated_calls":2`) {
				t.Error("the line of the request does not tell")
			}
			for _, r := range s.Upstream.Requests() {
				if r.Refused != nil {
					t.Errorf("a request was refused: %v", r.Refused)
				}
			}
		})
	}
}

// TestRepeatedCallsAreReported: repetitions can be reported without telling the model.
func TestRepeatedCallsAreReported(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	p := serve(t, "--config", s.budgeted(t, embedded(newStore(t)), "repeated_calls: {then: report}"))
	c := &speaker{path: "/chat/completions"}
	c.says("user", "Wait for the job.")
	for range 6 {
		c.calls(`{"job":7}`, "pending")
		if body := c.ask(t, s.Upstream, p); strings.Contains(body, "[Note: ") {
			t.Errorf("forwarded %s", body)
		}
	}
	p.counted(`dewpoint_repeated_calls_total{tenant="default"} 2`)
}

// TestRepeatedByCode: a call that is made by code gets no note, since the API accepts no text after a result that code reads.
func TestRepeatedByCode(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	p := serve(t, "--config", s.budgeted(t, embedded(newStore(t)), "repeated_calls: {after: 2, then: tell}"))
	c := &speaker{path: "/messages"}
	c.says("user", "Wait for the job.")
	for range 4 {
		c.calls(`{"job":7}`, "pending")
		use := c.said[len(c.said)-2]["content"].([]any)[0].(map[string]any)
		use["caller"] = map[string]any{"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
		if body := c.ask(t, s.Upstream, p); strings.Contains(body, "[Note: ") {
			t.Fatalf("the request went as %s", body)
		}
	}
}
