package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// TestThinkingBehindAMergedSummary: if an upstream requires alternating roles, the summary is merged into the user message before an answer that
// stays, so that the answer's thinking no longer fits and is left out. Only the first request is refused, because of its roles.
func TestThinkingBehindAMergedSummary(t *testing.T) {
	t.Parallel()
	s := newLenient(t, fakeupstream.Options{Alternates: true, Seals: fakeupstream.SealThinkingBlocks, Reply: callMake})
	p := serve(t, "--config", s.config(t, embedded(newStore(t))))
	history := []json.RawMessage{encode(map[string]string{"role": "system", "content": "You help."}), encode(map[string]string{"role": "user", "content": "Do it."})}
	condensed := 0
	for n := range 24 {
		a := send(t, p, body(history))
		text, err := a.rest()
		ok(t, err)
		if a.Header.Get("X-Dewpoint-Condensed") != "" {
			condensed++
		}
		var got struct {
			Choices []struct{ Message json.RawMessage }
		}
		var call struct {
			ToolCalls []struct{ ID string } `json:"tool_calls"`
		}
		ok(t, json.Unmarshal([]byte(text), &got))
		if len(got.Choices) != 1 {
			t.Fatalf("step %d: %s: %s", n, a.Status, text)
		}
		ok(t, json.Unmarshal(got.Choices[0].Message, &call))
		result := map[string]string{"role": "tool", "tool_call_id": call.ToolCalls[0].ID, "content": strings.Repeat(fmt.Sprint("line ", n, " "), 40)}
		history = append(history, got.Choices[0].Message, encode(result))
	}
	refused := 0
	for _, r := range s.Upstream.Requests() {
		if r.Refused != nil {
			refused++
		}
	}
	if condensed < 3 || refused != 1 {
		t.Errorf("condensed %d times, %d requests were refused", condensed, refused)
	}
}

// callMake answers with a call.
func callMake(r *fakeupstream.Request) fakeupstream.Answer {
	return fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{{ID: fmt.Sprintf("toolu_%d", r.Index), Name: "Bash", Arguments: `{"command":"make"}`}}}
}

// TestThinkingBehindAddedKnowledge: an answer's thinking is bound to the history with the added text that came before it, not to the history
// without it. A condensation after the answer does not change its thinking, within the tool loop and after it.
func TestThinkingBehindAddedKnowledge(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeFile(t, folder, "parcels.md", "---\nname: parcels\ntype: knowledge\ntriggers:\n- go on\n---\nParcels weigh 20 kg at most.\n")
	var step atomic.Int64
	s := newSetting(t, fakeupstream.Options{
		Seals: fakeupstream.SealThinkingBlocks, ContextWindow: thinkerWindow, IsSummary: isSummary,
		Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
			if n := step.Load(); n == 0 || n == 29 {
				return fakeupstream.Answer{Content: "Done so far."}
			}
			return callMake(r)
		},
	})
	c := newThinker(t, s, "{type: llm, keep_first: 3}", fmt.Sprintf("knowledge: {folder: %q, max_tokens: 2000}", folder))
	condensed := 0
	for n := range 36 {
		step.Store(int64(n))
		if c.step(n) {
			condensed++
		}
	}
	if condensed == 0 {
		t.Error("nothing was condensed")
	}
	for _, r := range s.Upstream.Requests() {
		if r.Refused != nil {
			t.Errorf("request %d was refused: %v", r.Index, r.Refused)
		}
	}
}

// TestLoopContinuesWhenItsHistoryIsUncondensed: a tool loop that began after a condensation can continue even if its history is suddenly forwarded
// uncondensed, although upstream refuses the loop without its thinking, and with thinking that is bound to the condensed history.
func TestLoopContinuesWhenItsHistoryIsUncondensed(t *testing.T) {
	t.Parallel()
	const begun, whole, again = 13, 17, 21 // the steps at which the loop begins, and from and to which the history is whole
	off := http.Header{"X-Dewpoint-Condense": {"off"}}
	for name, change := range map[string]func(*setting, *coder, *sessiontest.Server, bool){
		"the store is away": func(s *setting, c *coder, redis *sessiontest.Server, goes bool) {
			if goes {
				redis.Kill()
				return
			}
			redis.Start()
			s.awaitStore(c.t, c.proxy)
		},
		"the client opts out": func(_ *setting, c *coder, _ *sessiontest.Server, goes bool) {
			c.header = map[bool]http.Header{true: off}[goes]
		},
		"condensing is switched off": func(_ *setting, c *coder, _ *sessiontest.Server, goes bool) {
			mode := map[bool]string{true: "off", false: "on"}[goes]
			c.proxy.administerWith(encode(map[string]string{"mode": mode, "for": "1h", "reason": "a test"}), http.MethodPut, "/condensing", http.StatusOK)
		},
		"the session is another one": func(_ *setting, c *coder, _ *sessiontest.Server, goes bool) {
			if goes {
				c.header = http.Header{"X-Dewpoint-Session": {"another"}}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := sessiontest.StartRedis(t)
			var step atomic.Int64
			s := newSetting(t, fakeupstream.Options{
				Seals: fakeupstream.SealThinkingBlocks, IsSummary: isSummary,
				Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
					if step.Load() == begun-1 {
						return fakeupstream.Answer{Content: "Done so far."}
					}
					return callMake(r)
				},
			})
			c := newThinkerAt(t, s, inRedis(redis.Addr), "{type: excerpts, max_size: 20, min_tokens: 0}")
			condensed := 0
			for n := range 30 {
				if step.Store(int64(n)); n == whole || n == again {
					change(s, c, redis, n == whole)
				}
				if c.step(n) {
					condensed++
				}
			}
			if condensed == 0 {
				t.Error("nothing was condensed")
			}
			condensedAtOnce := name == "the session is another one"                          // its first request is condensed again, and asks to drop what is bound elsewhere
			if n := refusals(s.Upstream); (n == 0) != condensedAtOnce || n > again-whole+2 { // each request without the store, and two forms of the first one with it again
				t.Errorf("%d requests were refused", n)
			}
		})
	}
}
