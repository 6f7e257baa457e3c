package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// clientSteps is the number of steps with tool calls in a client's loop.
const clientSteps = 34

// clientPrompt is the prompt of the clients' users.
const clientPrompt = "Why is “größe” off by one? Ticket GR-88 📦"

// TestClients runs the vendors' client libraries through the proxy, with a tool loop.
func TestClients(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: make full runs real clients; the tests of proxy send requests in their shape")
	}
	t.Parallel()
	for registry, install := range map[string]func(testing.TB) func(string) []string{"npm": nodeClient, "PyPI": pythonClient} {
		t.Run(registry, func(t *testing.T) {
			t.Parallel()
			script := install(t)
			for _, mode := range []string{"stream", "whole"} {
				t.Run(mode, func(t *testing.T) { clientLoop(t, append(script("loop"), mode, clientPrompt)) })
				t.Run("responses "+mode, func(t *testing.T) {
					turnLoop(t, fakeupstream.SealResponsesDetails, append(script("items"), mode, clientPrompt))
				})
				t.Run("messages "+mode, func(t *testing.T) {
					turnLoop(t, fakeupstream.SealThinkingBlocks, append(script("turns"), mode, clientPrompt))
				})
				framework, name := "ai-sdk", "steps"
				if registry == "PyPI" {
					framework, name = "openai-agents", "runner"
				}
				t.Run(framework+" "+mode, func(t *testing.T) { runnerLoop(t, append(script(name), mode, clientPrompt)) })
			}
		})
	}
}

// clientLoop runs one loop. It checks the answers as the library presents them, and the forwarded requests.
func clientLoop(t *testing.T, program []string) {
	s := newSetting(t, fakeupstream.Options{APIKeys: []string{"sk-client"}, ChunkRunes: 5})
	steps, script := s.loop(t, program)
	checkForwarded(t, s.Upstream.Requests(), steps, script)
}

// turnLoop is clientLoop for APIs in which an answer is a turn, with one kind of reasoning.
func turnLoop(t *testing.T, seals fakeupstream.Seal, program []string) {
	s := newSetting(t, fakeupstream.Options{APIKeys: []string{"sk-client"}, ChunkRunes: 5, Seals: seals})
	steps, script := s.loop(t, program)
	for step, r := range s.checkTurns(t, script) {
		if steps[step].PromptTokens != r.PromptTokens {
			t.Errorf("step %d: the client was told of %d prompt tokens, it was %d", step, steps[step].PromptTokens, r.PromptTokens)
		}
	}
}

// runnerLoop is turnLoop for a framework that returns only the last answer of the model.
func runnerLoop(t *testing.T, program []string) {
	s := newSetting(t, fakeupstream.Options{APIKeys: []string{"sk-client"}, ChunkRunes: 5, Seals: fakeupstream.SealResponsesDetails})
	script := clientAnswers()
	s.Upstream.Script(script...)
	if out := s.client(t, program); strings.TrimSpace(out) != script[len(script)-1].Content {
		t.Errorf("it said %q", out)
	}
	s.checkTurns(t, script)
}

// checkTurns checks the forwarded requests, and returns those of the steps.
func (s *setting) checkTurns(t *testing.T, script []fakeupstream.Answer) (steps []fakeupstream.Request) {
	t.Helper()
	summaries := 0
	for _, r := range s.Upstream.Requests() {
		if r.Refused != nil || r.Status != 200 || r.Header.Get("Authorization") != "Bearer sk-client" && r.Header.Get("X-Api-Key") != "sk-client" {
			t.Fatalf("request %d: status %d, %v", r.Index, r.Status, r.Refused)
		}
		if r.Summary {
			if summaries++; !bytes.Contains(r.Body, []byte("Step 2:")) && summaries == 1 {
				t.Errorf("the first summary was written without what the model had said: %s", r.Body)
			}
			continue
		}
		if n := len(r.Messages); n > 4*maxSize { // a turn of one call and its result may have four items
			t.Errorf("step %d: %d messages forwarded", len(steps), n)
		}
		if len(steps) > 0 {
			checkOutputs(t, r, script[len(steps)-1].ToolCalls)
		}
		steps = append(steps, r)
	}
	if len(steps) != len(script) || summaries == 0 {
		t.Fatalf("%d steps, %d calls of the summariser", len(steps), summaries)
	}
	return steps
}

// checkOutputs checks that a request ends with the results of calls, which are blocks of the last message or separate items.
func checkOutputs(t *testing.T, r fakeupstream.Request, calls []fakeupstream.ToolCall) {
	t.Helper()
	var last struct{ Content []json.RawMessage }
	results := r.Messages[len(r.Messages)-1:]
	if json.Unmarshal(results[0], &last) == nil && len(last.Content) > 0 {
		results = last.Content
	} else {
		results = r.Messages[len(r.Messages)-len(calls):]
	}
	for i, call := range calls {
		var got struct {
			Call    string `json:"call_id"`
			Use     string `json:"tool_use_id"`
			Output  string
			Content string
		}
		ok(t, json.Unmarshal(results[i], &got))
		var arguments struct{ Command string }
		ok(t, json.Unmarshal([]byte(call.Arguments), &arguments))
		if got.Call+got.Use != call.ID || !strings.HasPrefix(got.Output+got.Content, "ran "+arguments.Command+"\n") {
			t.Errorf("result %d is %.200s", i, results[i])
		}
	}
}

// client runs a client through a proxy in front of the upstream, and returns its output.
func (s *setting) client(t *testing.T, program []string) string {
	t.Helper()
	return s.clientOf(t, s.config(t, embedded(newStore(t))), program)
}

// clientOf is client with a given configuration.
func (s *setting) clientOf(t *testing.T, config string, program []string) string {
	t.Helper()
	p := serve(t, "--config", config)
	environment := []string{"OPENAI_BASE_URL=" + p.url(), "OPENAI_API_KEY=sk-client", "ANTHROPIC_BASE_URL=http://" + p.Addr, "ANTHROPIC_API_KEY=sk-client",
		"NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1"}
	out, errs, err := runIn(t, t.TempDir(), environment, program[0], program[1:]...)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs)
	}
	return out
}

// loop runs a client's loop through a proxy in front of the upstream, and compares the answers as the library presents them with
// the given ones.
func (s *setting) loop(t *testing.T, program []string) ([]clientStep, []fakeupstream.Answer) {
	t.Helper()
	script := clientAnswers()
	s.Upstream.Script(script...)
	out := s.client(t, program)
	var steps []clientStep
	if err := json.Unmarshal([]byte(out), &steps); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(steps) != len(script) || s.Upstream.Unplayed() > 0 {
		t.Fatalf("%d steps, want %d", len(steps), len(script))
	}
	for i, got := range steps {
		if len(got.ToolCalls) == 0 {
			got.ToolCalls = nil
		}
		if want := stepOf(script[i], got); !reflect.DeepEqual(got, want) {
			t.Errorf("step %d:\ngot  %+v\nwant %+v", i, got, want)
		}
	}
	return steps, script
}

// clientStep is an answer as a client library presents it.
type clientStep struct {
	Role         string
	Content      *string
	ToolCalls    []clientCall `json:"tool_calls"`
	FinishReason string       `json:"finish_reason"`
	PromptTokens int          `json:"prompt_tokens"`
}

type clientCall struct {
	ID, Type string
	Function struct{ Name, Arguments string }
}

// stepOf returns how a library should present an answer. Upstream's usage is compared with the requests elsewhere.
func stepOf(a fakeupstream.Answer, got clientStep) clientStep {
	want := clientStep{Role: "assistant", Content: &a.Content, FinishReason: "stop", PromptTokens: got.PromptTokens}
	if a.Content == "" {
		want.Content = nil
	}
	for _, c := range a.ToolCalls {
		call := clientCall{ID: c.ID, Type: "function"}
		call.Function.Name, call.Function.Arguments = c.Name, c.Arguments
		want.ToolCalls, want.FinishReason = append(want.ToolCalls, call), "tool_calls"
	}
	return want
}

// clientAnswers returns the model's answers: single and parallel calls, with and without text, in several scripts.
func clientAnswers() []fakeupstream.Answer {
	var out []fakeupstream.Answer
	for n := range clientSteps {
		a := fakeupstream.Answer{Content: fmt.Sprintf("Step %d: ich prüfe „größe“ 🔍\n", n)}
		if n%5 == 4 {
			a.Content = ""
		}
		for i := range 1 + n%7/5 {
			command := fmt.Sprintf("grep -n \"größe\\\\d\" src/%d_%d.go | head -%d", n, i, n+1)
			a.ToolCalls = append(a.ToolCalls, fakeupstream.ToolCall{
				ID: fmt.Sprintf("call_%02d%d_0123456789", n, i), Name: "run",
				Arguments: string(encode(map[string]string{"command": command})),
			})
		}
		out = append(out, a)
	}
	return append(out, fakeupstream.Answer{Content: "Fertig: the loop counted from 1. 世界 GR-88 can be closed."})
}

// checkForwarded checks the forwarded requests: none refused, one per step, condensed when due, and with the newest results as
// the client sent them.
func checkForwarded(t *testing.T, requests []fakeupstream.Request, steps []clientStep, script []fakeupstream.Answer) {
	t.Helper()
	sent, step, summaries, condensed := 2, 0, 0, false
	for _, r := range requests {
		if r.Refused != nil || r.Status != 200 || r.Header.Get("Authorization") != "Bearer sk-client" {
			t.Fatalf("request %d: status %d, %v", r.Index, r.Status, r.Refused)
		}
		if r.Summary {
			summaries++
			continue
		}
		if n := len(r.Messages); n > maxSize || n > sent || sent > maxSize && n == sent {
			t.Errorf("step %d: %d messages forwarded of %d", step, n, sent)
		}
		condensed = condensed || len(r.Messages) < sent
		if steps[step].PromptTokens != r.PromptTokens {
			t.Errorf("step %d: the client was told of %d prompt tokens, it was %d", step, steps[step].PromptTokens, r.PromptTokens)
		}
		checkNewest(t, r, script, step)
		sent += 1 + len(script[step].ToolCalls)
		step++
	}
	if step != len(script) || summaries == 0 || !condensed {
		t.Errorf("%d steps, %d calls of the summariser, condensed %t", step, summaries, condensed)
	}
}

// checkNewest checks that a request ends with the results of the previous step.
func checkNewest(t *testing.T, r fakeupstream.Request, script []fakeupstream.Answer, step int) {
	t.Helper()
	if step == 0 {
		return
	}
	calls := script[step-1].ToolCalls
	for i, raw := range r.Messages[len(r.Messages)-len(calls):] {
		var got struct {
			Role, Content string
			ToolCallID    string `json:"tool_call_id"`
		}
		ok(t, json.Unmarshal(raw, &got))
		var arguments struct{ Command string }
		ok(t, json.Unmarshal([]byte(calls[i].Arguments), &arguments))
		if got.ToolCallID != calls[i].ID || !strings.HasPrefix(got.Content, "ran "+arguments.Command+"\n") {
			t.Errorf("step %d: result %d is %.200s", step, i, raw)
		}
	}
}

// TestLockFilesNameNoRegistry checks that the lock files name no registry, so that packages come from the user's own, and that all packages are
// pinned.
func TestLockFilesNameNoRegistry(t *testing.T) {
	for name, forbidden := range map[string]string{
		"package-lock.json": `"resolved"|https?:`, "requirements.txt": `(?m)https?:|^-|^[^=\n]+$`, ".npmrc": `registry\s*=`,
		"agents/package-lock.json": `"resolved"`, "agents/.npmrc": `registry\s*=`,
		"memory/package-lock.json": `"resolved"`, "memory/.npmrc": `registry\s*=`,
	} {
		content, err := os.ReadFile("clients/" + name)
		ok(t, err)
		if found := regexp.MustCompile(forbidden).Find(content); len(content) == 0 || found != nil {
			t.Errorf("%s has %q", name, found)
		}
	}
}
