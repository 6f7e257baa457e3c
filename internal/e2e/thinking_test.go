package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
)

// TestThinkingBehindAMergedSummary: an upstream that requires alternating roles gets the summary in the user message before the kept
// answer, whose thinking then no longer belongs there. Only the first request is refused, for its roles.
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

// TestThinkingBehindAddedKnowledge: an answer given after a text was added to the history is bound to that text, not to the history without
// it. A condensation behind the answer leaves its thinking as it is, within the tool loop and after it.
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
