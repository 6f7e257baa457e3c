package proxy_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// tallying counts tokens, and records how much it has counted.
type tallying struct {
	quarters
	messages, bytes atomic.Int64
}

func (c *tallying) Counter(string) engine.Counter { return c }
func (c *tallying) Message(m session.Content) int {
	c.messages.Add(1)
	c.bytes.Add(int64(len(m.Text)))
	return c.quarters.Message(m)
}

// TestCountsWhatIsNew: each step of a session counts its new messages, once, and no earlier ones.
func TestCountsWhatIsNew(t *testing.T) {
	for _, before := range []int{5, 1001} {
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			tokens := &tallying{}
			r := newRig(t, setup{tokens: tokens})
			const steps = 5
			all := turns("ships", before+2*steps)
			for step := range steps + 1 {
				counted, bytes := tokens.messages.Load(), tokens.bytes.Load()
				resp, body := r.ask(messages(all[:1+before+2*step]...))
				if resp.StatusCode != http.StatusOK {
					t.Fatal(resp.Status, body)
				}
				counted, bytes = tokens.messages.Load()-counted, tokens.bytes.Load()-bytes
				switch {
				case step == 0 && counted != int64(before)+1:
					t.Errorf("%d of %d messages were counted at first", counted, before+1)
				case step > 0 && (counted != 2 || bytes > 2*500):
					t.Errorf("step %d: %d messages with %d bytes were counted, want the 2 new ones", step, counted, bytes)
				}
			}
		})
	}
}

// pondering also counts reasoning.
type pondering struct{ quarters }

func (pondering) Counter(string) engine.Counter { return pondering{} }
func (pondering) Message(m session.Content) int {
	return quarters{}.Message(m) + quarters{}.Text(m.Reasoning)
}

// TestCountsReasoning: a message with reasoning is the same message as without, but costs more.
func TestCountsReasoning(t *testing.T) {
	r := newRig(t, setup{tokens: pondering{}})
	const thought = 400
	for i, n := range []int{0, thought, 0} {
		answer := `{"role":"assistant","content":"I go.","reasoning_content":"` + strings.Repeat("h", n) + `"}`
		resp, body := r.ask(messages(say("user", fmt.Sprint("go ", i)), answer, say("user", "on")))
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status, body)
		}
		before, _, _ := strings.Cut(resp.Header.Get("X-Dewpoint-Tokens"), ";")
		if got, err := strconv.Atoi(before); err != nil || (got > thought/4) != (n > 0) {
			t.Errorf("%s tokens with %d bytes of reasoning", before, n)
		}
	}
}
