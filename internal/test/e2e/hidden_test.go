package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// TestHiddenTools runs the vendors' client libraries with a model that calls tools unknown to them, in a tool loop.
func TestHiddenTools(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: make full runs hidden tools with real clients; the tests of proxy prove the same without them")
	}
	t.Parallel()
	for name, install := range map[string]func(testing.TB) func(string) []string{"npm": nodeClient, "PyPI": pythonClient} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := install(t)
			for _, mode := range []string{"stream", "whole"} {
				for _, tool := range []string{"request_condensation", "recall"} {
					t.Run("chat "+mode+" "+tool, func(t *testing.T) { hiddenLoop(t, "", tool, append(script("loop"), mode, clientPrompt)) })
					for _, seals := range []fakeupstream.Seal{fakeupstream.SealClaudeDetails, fakeupstream.SealResponsesDetails} {
						t.Run("responses "+mode+" "+tool+" "+string(seals), func(t *testing.T) {
							hiddenLoop(t, seals, tool, append(script("items"), mode, clientPrompt))
						})
					}
					t.Run("messages "+mode+" "+tool, func(t *testing.T) {
						hiddenLoop(t, fakeupstream.SealThinkingBlocks, tool, append(script("turns"), mode, clientPrompt))
					})
				}
			}
		})
	}
}

// hiddenLoop runs one loop with calls of a hidden tool: alone, between the client's own, in parallel, and several times in a row.
func hiddenLoop(t *testing.T, seals fakeupstream.Seal, tool string, program []string) {
	s := newSetting(t, fakeupstream.Options{APIKeys: []string{"sk-client"}, ChunkRunes: 5, Seals: seals})
	script, want, asked := hiddenAnswers(tool)
	s.Upstream.Script(script...)
	config := s.write(t, embedded(newStore(t)), "llm_config: cheap, max_size: 60, agent_request: true, recall: true", "{delay: 0s, timeout: 1m}")
	var steps []clientStep
	out := s.clientOf(t, config, program)
	if err := json.Unmarshal([]byte(out), &steps); err != nil || len(steps) != len(want) || s.Upstream.Unplayed() > 0 {
		t.Fatalf("%v: %d steps, want %d\n%s", err, len(steps), len(want), out)
	}
	sums, at := make([]int, len(want)), 0
	var before fakeupstream.Request
	broken, condensed := 0, 0
	for _, r := range s.Upstream.Requests() {
		if r.Refused != nil || r.Status != 200 {
			t.Fatalf("request %d: status %d, %v\n%s", r.Index, r.Status, r.Refused, r.Body)
		}
		if r.Summary {
			condensed++
			continue
		}
		if before.Tools != nil && !bytes.Equal(r.Tools, before.Tools) || !bytes.Contains(r.Tools, []byte(tool)) {
			t.Errorf("request %d has other tools: %s", r.Index, r.Tools)
		}
		if !begins(r.Messages, before.Messages) {
			broken++
		}
		before = r
		sums[asked[at]] += r.PromptTokens
		at++
	}
	if condensed == 0 || broken > condensed {
		t.Errorf("%d prefixes changed, %d summaries were written", broken, condensed)
	}
	for i, got := range steps {
		if len(got.ToolCalls) == 0 {
			got.ToolCalls = nil
		}
		if w := stepOf(want[i], got); !reflect.DeepEqual(got, w) {
			t.Errorf("step %d:\ngot  %+v\nwant %+v", i, got, w)
		}
		if got.PromptTokens != sums[i] {
			t.Errorf("step %d: the client was told of %d prompt tokens, it was %d", i, got.PromptTokens, sums[i])
		}
	}
}

// begins reports whether messages begin with all of the others.
func begins(messages, others []json.RawMessage) bool {
	for i, m := range others {
		if i >= len(messages) || !bytes.Equal(m, messages[i]) {
			return false
		}
	}
	return true
}

// hiddenAnswers returns the model's answers: those of clientAnswers with calls of a hidden tool added, and what the client should
// see of them. asked has, for each answer, the client's step to which it belongs.
func hiddenAnswers(tool string) (script []fakeupstream.Answer, want []fakeupstream.Answer, asked []int) {
	hidden := func(text string, n int) (a fakeupstream.Answer) {
		for i := range n {
			a.ToolCalls = append(a.ToolCalls, fakeupstream.ToolCall{
				ID: fmt.Sprintf("call_h%03d%d_0123456789", len(script), i), Name: tool, Arguments: `{"query":"größe"}`,
			})
		}
		a.Content = text
		return a
	}
	for n, a := range clientAnswers() {
		text := ""
		play := func(a fakeupstream.Answer) { script, asked = append(script, a), append(asked, n) }
		own := a
		switch n % 4 {
		case 1:
			own.ToolCalls = append(hidden("", 1).ToolCalls, a.ToolCalls...)
		case 2:
			text = "Hm “größe”. "
			play(hidden(text, 1))
		case 3:
			play(hidden("", 2))
			text = "Well. "
			play(hidden(text, 1))
			own.ToolCalls = append(append([]fakeupstream.ToolCall{}, a.ToolCalls...), hidden("", 1).ToolCalls...)
		}
		if len(a.ToolCalls) == 0 {
			own = a
		}
		play(own)
		a.Content = text + a.Content
		want = append(want, a)
	}
	return script, want, asked
}

// TestNotesNameRecallOnlyWhereItIsOffered: notes in place of what is hidden tell the model to call recall only in requests that offer this tool:
// not where the Responses API stores answers, and not where the client forbids tools or has none.
func TestNotesNameRecallOnlyWhereItIsOffered(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a line of the log ", 200)
	chat := `"messages":[{"role":"user","content":"Look."},{"role":"assistant","content":null,"tool_calls":[{"id":"call_00000000000000000001","type":"function","function":{"name":"sh","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_00000000000000000001","content":"` + long + `"}]}`
	responses := `"input":[{"type":"message","role":"user","content":"Look."},{"type":"function_call","call_id":"call_00000000000000000001","name":"sh","arguments":"{}"},{"type":"function_call_output","call_id":"call_00000000000000000001","output":"` + long + `"}]}`
	const chatTools, responsesTools = `"tools":[{"type":"function","function":{"name":"sh"}}],`, `"tools":[{"type":"function","name":"sh"}],`
	for name, c := range map[string]struct {
		path, body string
		offered    bool
	}{
		"chat":                          {"/v1/chat/completions", `{"model":"gpt-5.5",` + chatTools + chat, true},
		"chat without tools":            {"/v1/chat/completions", `{"model":"gpt-5.5",` + chat, false},
		"chat, no tool is to be called": {"/v1/chat/completions", `{"model":"gpt-5.5","tool_choice":"none",` + chatTools + chat, false},
		"responses not stored":          {"/v1/responses", `{"model":"gpt-5.5","store":false,` + responsesTools + responses, true},
		"responses stored":              {"/v1/responses", `{"model":"gpt-5.5",` + responsesTools + responses, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLenient(t, fakeupstream.Options{})
			p := serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
condenser: {type: pipeline, recall: true, condensers: [{type: tool_output_trim, max_event_length: 500}, {type: excerpts}]}
shutdown: {delay: 0s, timeout: 1m}`, s.url, embedded(newStore(t)))))
			if status, answer := postBody(t, p, c.path, c.body); status != http.StatusOK {
				t.Fatalf("%d: %s", status, answer)
			}
			sent := string(s.Upstream.Requests()[0].Body)
			offered, named := strings.Contains(sent, `"name":"recall"`), strings.Contains(sent, "recall has them")
			if !strings.Contains(sent, "characters left out here") || offered != c.offered || named != c.offered {
				t.Errorf("recall is offered: %t, named: %t, want %t", offered, named, c.offered)
			}
		})
	}
}
