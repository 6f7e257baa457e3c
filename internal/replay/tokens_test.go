package replay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// cookbook counts a message as OpenAI's cookbook does, from the JSON that arrived, and knows nothing of what the proxy counted.
func cookbook(t *testing.T) func([]byte) int {
	t.Helper()
	encoder, err := tokenize.New().Encoder(tokenize.O200k)
	if err != nil {
		t.Fatal(err)
	}
	return func(raw []byte) int {
		var m struct {
			Role, Name, Content string
			ToolCalls           []struct {
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			return encoder.Count(string(raw)) // the tools
		}
		n := 3 + encoder.Count(m.Role) + encoder.Count(m.Content)
		for _, c := range m.ToolCalls {
			n += 8 + encoder.Count(c.Function.Name) + encoder.Count(c.Function.Arguments)
		}
		return n
	}
}

// half is the first half of a run.
func half(run replay.Run) replay.Run {
	at := len(run.Messages) / 2
	for !bytes.Contains(run.Messages[at], []byte(`"role":"assistant"`)) {
		at++
	}
	run.Messages, run.Final = run.Messages[:at], run.Messages[at]
	return run
}

// TestTokensAreThoseOfUpstream: whatever the condenser, X-Dewpoint-Tokens tells what upstream counts of what it got.
func TestTokensAreThoseOfUpstream(t *testing.T) {
	count := cookbook(t)
	play := func(t *testing.T, c config.Condenser) {
		cfg := config.Default()
		cfg.Condenser = c
		stage, err := replay.NewStage(*cfg, fakeupstream.Options{Keep: 16, CountTokens: count})
		if err != nil {
			t.Fatal(err)
		}
		_, err = replay.Play(t.Context(), half(demo.Sample()), replay.Options{
			URL: func(int) string { return stage.URL() }, Upstream: stage.Upstream, Model: replay.Model, Counter: count,
			Each: func(s replay.Step) {
				var before, after int
				if _, err := fmt.Sscanf(s.Tokens, "%d;%d", &before, &after); err != nil {
					t.Fatalf("step %d: tokens %q: %v", s.Number, s.Tokens, err)
				}
				if off := after - s.Prompt - tokenize.ReplyPriming; max(off, -off)*100 > s.Prompt {
					t.Errorf("step %d: %q where upstream counted %d", s.Number, s.Tokens, s.Prompt)
				}
				if off := before - s.Sent - tokenize.ReplyPriming; max(off, -off)*100 > s.Sent {
					t.Errorf("step %d: %q of %d that were sent", s.Number, s.Tokens, s.Sent)
				}
			},
		})
		if err != nil {
			t.Error(err)
		}
		if err := stage.Close(); err != nil {
			t.Error(err)
		}
	}
	of := func(kind string) config.Condenser {
		c := config.Default().Condenser
		c.Type, c.LLMConfig, c.MaxSize, c.MinTokens, c.MaxEvents, c.AttentionWindow, c.MaxEventLength = kind, "cheap", 40, 0, 30, 8, 2000
		return c
	}
	for _, kind := range config.CondenserTypes() {
		if kind == config.TypePipeline {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			play(t, config.Condenser{Type: config.TypePipeline, Condensers: []config.Condenser{
				of(config.TypeToolOutputTrim), of(config.TypeObservationMasking), of(kind),
			}})
		})
	}
}
