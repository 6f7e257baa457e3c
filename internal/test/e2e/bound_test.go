package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// TestThinkingInASlidingWindow: an agent drops its oldest messages at the end of each turn, as Strands does by default (a window of 40). The
// thinking in the remaining messages is bound to the dropped ones, so upstream refuses the request, condensed or not, until the thinking is
// stripped. The refusal does not concern condensation, so later turns are still condensed.
func TestThinkingInASlidingWindow(t *testing.T) {
	t.Parallel()
	const turn = 12
	var step atomic.Int64
	s := newSetting(t, fakeupstream.Options{
		Seals: fakeupstream.SealThinkingBlocks, IsSummary: isSummary,
		Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
			if step.Load()%turn == turn-1 {
				return fakeupstream.Answer{Content: "Done so far."}
			}
			return callMake(r)
		},
	})
	c := newThinker(t, s, "{type: excerpts, max_size: 20, min_tokens: 0}")
	condensed := make([]int, 6) // by turn
	for n := range len(condensed) * turn {
		step.Store(int64(n))
		if c.step(n) {
			condensed[n/turn]++
		}
		if n%turn == turn-1 && n > turn {
			c.elements = c.elements[2*turn:] // drops all but the newest turn
		}
	}
	t.Logf("condensations by turn: %v, %d refused", condensed, refusals(s.Upstream))
	for i, n := range condensed[2:] {
		if n == 0 {
			t.Errorf("turn %d: nothing was condensed", i+2)
		}
	}
}

// TestItemWithoutItsReasoning: a client loses the reasoning of one item, as OpenAI's agents do if a handoff filter removes a tool call and the
// reasoning before it. Upstream refuses the history as long as it contains the item's id. The refusal does not concern condensation, so later
// requests are still condensed.
func TestItemWithoutItsReasoning(t *testing.T) {
	t.Parallel()
	const loses = 26
	var step atomic.Int64
	s := newSetting(t, fakeupstream.Options{
		Seals: fakeupstream.SealResponsesDetails, IsSummary: isSummary,
		Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
			if n := step.Load(); n == loses {
				return fakeupstream.Answer{Content: "A text."}
			}
			return callMake(r)
		},
	})
	p := serve(t, "--config", s.config(t, embedded(newStore(t))))
	items := []json.RawMessage{encode(map[string]string{"role": "user", "content": "Repair the build."})}
	before, after := 0, 0
	for n := range 60 {
		step.Store(int64(n))
		a := sendTo(t, p, "/responses", encode(map[string]any{
			"model": "gpt-4.1", "store": false, "input": items, "include": []string{"reasoning.encrypted_content"},
			"tools": []any{map[string]any{"type": "function", "name": "Bash", "parameters": map[string]any{"type": "object", "properties": map[string]any{}}}},
		}))
		text, err := a.rest()
		ok(t, err)
		if a.Header.Get("X-Dewpoint-Condensed") != "" {
			if n <= loses {
				before++
			} else {
				after++
			}
		}
		var got struct{ Output []json.RawMessage }
		ok(t, json.Unmarshal([]byte(text), &got))
		for _, item := range got.Output {
			var of struct {
				Type   string
				CallID string `json:"call_id"`
			}
			ok(t, json.Unmarshal(item, &of))
			if n == loses && of.Type == "reasoning" {
				continue
			}
			if items = append(items, item); of.Type == "function_call" {
				items = append(items, encode(map[string]string{"type": "function_call_output", "call_id": of.CallID, "output": strings.Repeat(fmt.Sprint("line ", n, " "), 40)}))
			}
		}
		if n == loses {
			items = append(items, encode(map[string]string{"role": "user", "content": "Go on."}))
		}
	}
	t.Logf("%d condensations before, %d after; %d refused", before, after, refusals(s.Upstream))
	if before == 0 || after < 2 {
		t.Error("nothing is condensed any more")
	}
}

// TestClearedResultsWithThinking: a client clears old tool results at each step, as ClearToolUsesEdit of LangChain does, and sends its thinking
// back. Upstream refuses thinking that follows a cleared result. The thinking is stripped, and the history stays condensed.
func TestClearedResultsWithThinking(t *testing.T) {
	t.Parallel()
	const steps = 40
	s := newSetting(t, fakeupstream.Options{Seals: fakeupstream.SealThinkingBlocks})
	for i := range steps {
		s.Upstream.Script(fakeupstream.Answer{Content: fmt.Sprintf("Step %d.", i), ToolCalls: []fakeupstream.ToolCall{{
			ID: fmt.Sprintf("toolu_cleared_%06d", i), Name: "run", Arguments: `{"command":"ls"}`,
		}}})
	}
	p := serve(t, "--config", s.config(t, embedded(newStore(t))))
	output := encode(strings.Repeat("a line of what it printed\n", 20))
	messages := []json.RawMessage{encode(map[string]any{"role": "user", "content": "Count the lines."})}
	for range steps {
		a := sendTo(t, p, "/messages", encode(map[string]any{
			"model": "claude-x", "max_tokens": 400, "messages": messages, "thinking": map[string]string{"type": "adaptive"},
			"tools": []any{map[string]any{"name": "run", "input_schema": map[string]string{"type": "object"}}},
		}))
		text, err := a.rest()
		ok(t, err)
		var answer struct{ Content []json.RawMessage }
		ok(t, json.Unmarshal([]byte(text), &answer))
		messages = append(messages, encode(map[string]any{"role": "assistant", "content": answer.Content}))
		var results []any
		for _, b := range answer.Content {
			var call struct{ Type, ID string }
			ok(t, json.Unmarshal(b, &call))
			if call.Type == "tool_use" {
				results = append(results, map[string]any{"type": "tool_result", "tool_use_id": call.ID, "content": output})
			}
		}
		messages = append(messages, encode(map[string]any{"role": "user", "content": results}))
		for old := len(messages) - 7; old > 0 && len(messages) > 19; old -= 2 { // all but the newest three results are cleared
			messages[old] = bytes.ReplaceAll(messages[old], output, []byte(`"[cleared]"`))
		}
	}
	refused, longest := 0, 0
	for _, r := range s.Upstream.Requests() {
		if r.Refused != nil {
			refused++
		} else if !r.Summary {
			longest = max(longest, len(r.Messages))
		}
	}
	if refused == 0 || refused > steps || longest > 2*maxSize {
		t.Errorf("%d of %d requests were refused, and up to %d messages were accepted", refused, len(s.Upstream.Requests()), longest)
	}
}
