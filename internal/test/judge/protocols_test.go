package judge_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// TestProtocols plays the sample in the other protocols under every kind of condenser, streamed and not, with sealed reasoning and
// without. It condenses as in Chat Completions, the strict upstream accepts every request, no answer is altered, and the log is
// complete.
func TestProtocols(t *testing.T) {
	quick.Skip(t)
	for name, condenser := range condensers() {
		if testing.Short() && name != "llm" {
			continue // make full plays them all
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chat := playSample(t, condenser, fakeupstream.Options{}, judge.Options{Protocol: "chat"})
			for _, o := range []struct {
				protocol string
				streamed bool
				form     fakeupstream.Seal
			}{
				{"messages", false, ""}, {"messages", true, fakeupstream.SealThinkingBlocks},
				{"responses", false, ""}, {"responses", true, fakeupstream.SealResponsesDetails}, {"responses", false, fakeupstream.SealClaudeDetails},
				{"gemini", false, ""}, {"gemini", true, fakeupstream.SealThoughtSignature},
			} {
				report := playSample(t, condenser, fakeupstream.Options{Seals: o.form}, judge.Options{
					Protocol: o.protocol, Stream: o.streamed, Sealed: o.form != "",
				})
				if report.Condensations != chat.Condensations {
					t.Errorf("%+v: %d condensations, %d in Chat Completions", o, report.Condensations, chat.Condensations)
				}
				if len(chat.Violations) > 0 {
					continue // some condensers change the prefix at every step, which the judge does not expect
				}
				for _, v := range report.Violations {
					t.Errorf("%+v: %v", o, v)
				}
			}
		})
	}
}

// TestNothingIsSavedUnchanged: if nothing is condensed, the number of forwarded tokens equals that of the sent ones, in every protocol.
func TestNothingIsSavedUnchanged(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	for _, protocol := range []string{"chat", "messages", "responses", "gemini"} {
		cfg := config.Default()
		cfg.Condenser = config.Condenser{Type: catalogue.TypeNoop}
		stage, err := judge.NewStage(*cfg, fakeupstream.Options{}, judge.Encoders)
		if err != nil {
			t.Fatal(err)
		}
		run := replay.Run{
			Messages: []json.RawMessage{[]byte(`{"role": "system", "content": "Act."}`), []byte(`{"role": "user", "content": "Go."}`)},
			Tools:    []byte(`[ {"type": "function", "function": {"name": "read", "parameters": {"type": "object"} } } ]`),
			Final:    []byte(`{"role": "assistant", "content": "Done."}`),
		}
		report, err := judge.Play(t.Context(), run, judge.Options{
			URL: func(int) string { return stage.URL() }, Upstream: stage.Upstream, Model: judge.Model, Protocol: protocol,
		})
		if err != nil || report.Sent == 0 || report.Sent != report.Forwarded {
			t.Errorf("%s: %d sent, %d forwarded, %v", protocol, report.Sent, report.Forwarded, err)
		}
		if err := stage.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestProtocolOverflows: an overflow in the protocol's error format is recognised, and the request is condensed and sent again.
func TestProtocolOverflows(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	condenser := config.Condenser{Type: catalogue.TypeLLM, LLMConfig: "cheap", MaxSize: 1000, KeepFirst: 2}
	for _, protocol := range []string{"messages", "responses", "gemini"} {
		report := playSample(t, condenser, fakeupstream.Options{ContextWindow: 12000}, judge.Options{
			Protocol: protocol, Model: "a-model-of-ours", Window: 12000,
		})
		if report.Overflows == 0 || report.Condensations == 0 {
			t.Errorf("%s: %d overflows, %d condensations", protocol, report.Overflows, report.Condensations)
		}
		for _, v := range report.Violations {
			t.Errorf("%s: %v", protocol, v)
		}
	}
}

// playSample plays the sample, and fails the test if a step fails or the log lacks anything.
func playSample(t *testing.T, condenser config.Condenser, up fakeupstream.Options, o judge.Options) judge.Report {
	t.Helper()
	cfg := config.Default()
	cfg.Condenser = condenser
	up.Keep = 16
	stage, err := judge.NewStage(*cfg, up, judge.Encoders)
	if err != nil {
		t.Fatal(err)
	}
	o.URL, o.Upstream, o.Expect.Summarisers = func(int) string { return stage.URL() }, stage.Upstream, []string{judge.Summariser}
	if o.Model == "" {
		o.Model = judge.Model
	}
	report, err := judge.Play(t.Context(), demo.Sample(), o)
	what := fmt.Sprintf("%s, streamed %t, sealed %q", o.Protocol, o.Stream, up.Seals)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if err == nil {
		if err := stage.CheckLog(t.Context(), report); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := stage.Close(); err != nil {
		t.Error(err)
	}
	return report
}

// TestMessagesAreCounted: if a client requests a token count, it gets the count of the request as it would be forwarded.
func TestMessagesAreCounted(t *testing.T) {
	cfg := config.Default()
	cfg.Condenser = config.Condenser{Type: catalogue.TypePipeline, Condensers: []config.Condenser{
		{Type: catalogue.TypeObservationMasking, AttentionWindow: 2}, {Type: catalogue.TypeAmortizedForgetting, MaxSize: 12, KeepFirst: 1},
	}}
	stage, err := judge.NewStage(*cfg, fakeupstream.Options{}, judge.Encoders)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stage.Close(); err != nil {
			t.Error(err)
		}
	}()
	elements := []string{`{"role":"user","content":"go"}`}
	for n := range 12 {
		elements = append(elements, fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"ls","input":{}}]}`, n),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%s"}]}`, n, strings.Repeat("a long result ", 20)))
	}
	body := `{"model":"gpt-4o","max_tokens":10,"messages":[` + strings.Join(elements, ",") + `]}`
	post := func(path string) string {
		req, err := http.NewRequest(http.MethodPost, stage.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Anthropic-Version", "2023-06-01")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s: %s (%v)", path, resp.Status, answer, err)
		}
		return string(answer)
	}
	post("/messages")
	sent := stage.Upstream.Requests()[0]
	if len(sent.Messages) >= len(elements) {
		t.Fatalf("%d of %d messages were forwarded", len(sent.Messages), len(elements))
	}
	if got, want := post("/messages/count_tokens"), fmt.Sprintf(`"input_tokens":%d}`, sent.PromptTokens); !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
