package replay

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

var encoders = tokenize.New()

// recorded returns a run of an agent that reads one file after another. prompt is the recorded size of the first request.
func recorded(protocol Protocol, steps, prompt int) Run {
	run := Run{Name: "recorded", Protocol: protocol, Recorded: map[int]Recorded{}}
	add := func(format string, args ...any) {
		run.Messages = append(run.Messages, json.RawMessage(fmt.Sprintf(format, args...)))
	}
	write := map[Protocol]struct{ ask, call, result string }{
		ProtocolChat: {
			`{"role":"user","content":"Fix the cart."}`,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"read","arguments":"{\"path\":\"shop/file%04d.go\"}"}}]}`,
			`{"role":"tool","tool_call_id":"c%d","content":%q}`,
		},
		ProtocolMessages: {
			`{"role":"user","content":[{"type":"text","text":"Fix the cart."}]}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"read","input":{"path":"shop/file%04d.go"}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":%q}]}`,
		},
		ProtocolResponses: {
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"Fix the cart."}]}`,
			`{"type":"function_call","call_id":"c%d","name":"read","arguments":"{\"path\":\"shop/file%04d.go\"}"}`,
			`{"type":"function_call_output","call_id":"c%d","output":%q}`,
		},
	}[protocol]
	add("%s", write.ask)
	for i := range steps {
		run.Recorded[len(run.Messages)] = Recorded{Model: "claude-opus-4-8", Prompt: prompt}
		prompt = 0
		add(write.call, i, i)
		add(write.result, i, fmt.Sprintf("package shop\n// see shop/file%04d.go\n", i+1)+strings.Repeat(fmt.Sprintf("var total%d = 1\n", i), 100))
	}
	return run
}

// TestEveryProtocolIsReplayed: the same run costs about the same, and saves, in every protocol.
func TestEveryProtocolIsReplayed(t *testing.T) {
	t.Parallel()
	quick.Skip(t)
	for _, protocol := range []Protocol{ProtocolChat, ProtocolMessages, ProtocolResponses} {
		for _, kind := range []string{"excerpts", "llm", "structured_summary"} {
			cfg := config.Default()
			cfg.Condenser = config.Condenser{Type: kind, Trigger: "limits", MaxSize: 60, MaxTokens: 24_000, KeepFirst: 2, MinimumProgress: 0.1, MaxEventLength: 10_000, Wait: "deadline"}
			r, err := Play(t.Context(), cfg, recorded(protocol, 30, 12_000), Options{Encoders: encoders})
			if err != nil {
				t.Errorf("%q %s: %v", protocol, kind, err)
				continue
			}
			if r.Steps != 30 || r.Condensations == 0 || len(r.Failed) > 0 || r.With.Input >= r.Without.Input || (r.Own.Calls > 0) != (kind != "excerpts") {
				t.Errorf("%q %s: %+v", protocol, kind, r)
			}
			if math.Abs(r.Without.Cost.USD-0.5487) > 0.0001 || r.Without.Models[0] != "claude-opus-4-8" {
				t.Errorf("%q: without the proxy %+v", protocol, r.Without)
			}
			if r.Named == 0 || r.Missing > r.Named {
				t.Errorf("%q %s: %d of %d are missing", protocol, kind, r.Missing, r.Named)
			}
		}
	}
}

// TestMissingSystemAndToolsAreBilled: a run without tools bills as if its first request had the recorded size.
func TestMissingSystemAndToolsAreBilled(t *testing.T) {
	t.Parallel()
	for _, protocol := range []Protocol{ProtocolChat, ProtocolMessages, ProtocolResponses} {
		run := recorded(protocol, 2, 12_000)
		c := newCounter(nil, encoders, newCounts())
		d, err := measure(t.Context(), run, "", c)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.steps[0].usage.Input; got < 11_990 || got > 12_010 || d.estimated < 11_900 {
			t.Errorf("%q: the first request has %d tokens, %d of them estimated", protocol, got, d.estimated)
		}
		if d.messages > 800 {
			t.Errorf("%q: %d tokens count as messages", protocol, d.messages)
		}
		run.Recorded = nil
		if d, err = measure(t.Context(), run, "", c); err != nil || d.estimated != 0 || d.steps[0].usage.Input > 100 {
			t.Errorf("%q: nothing is recorded, and %d tokens are estimated, %v", protocol, d.estimated, err)
		}
		run = recorded(protocol, 2, 12_000)
		run.Tools = json.RawMessage(`[]`)
		if d, err = measure(t.Context(), run, "", c); err != nil || d.estimated != 0 {
			t.Errorf("%q: the tools are known, and %d tokens are estimated, %v", protocol, d.estimated, err)
		}
	}
}

// TestMarkedPrefixesAreCached: Anthropic caches what ends with a mark, and looks for it up to 20 blocks before one.
func TestMarkedPrefixesAreCached(t *testing.T) {
	t.Parallel()
	run := recorded(ProtocolMessages, 40, 0)
	run.System = json.RawMessage(`[{"type":"text","text":"` + strings.Repeat("You are an agent. ", 300) + `"}]`)
	m := newMeter(newCounter(nil, encoders, newCounts()), messagesWire{})
	used := func(messages int) model.Usage {
		_, u, err := m.exchange(messagesWire{}.body(&run, "claude-opus-4-8", run.Messages[:messages]), run.Messages[1])
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	first, next, far := used(3), used(19), used(61)
	if first.Cached != 0 || first.Written != first.Input {
		t.Errorf("the first request: %+v", first)
	}
	if next.Cached != first.Input {
		t.Errorf("16 blocks later: %+v after %+v", next, first)
	}
	if far.Cached < 1024 || far.Cached > 1600 {
		t.Errorf("42 blocks later, only the system prompt is found: %+v", far)
	}
}

// TestShortRunsAreNotPlayed: what is too short to condense costs the same under every configuration, and replaying it confirms that.
func TestShortRunsAreNotPlayed(t *testing.T) {
	t.Parallel()
	run := recorded(ProtocolChat, 11, 40_000)
	byPrice, byLimit, masking := config.Default(), config.Default(), config.Default()
	byPrice.Condenser = config.Condenser{Type: "excerpts", Trigger: "economics", MaxSize: 240, MaxTokens: 0.75, MinTokens: 4000, KeepFirst: 2, MinimumProgress: 0.1}
	byLimit.Condenser = config.Condenser{Type: "excerpts", Trigger: "limits", MaxSize: 10, MinTokens: 4000, KeepFirst: 2, MinimumProgress: 0.1}
	masking.Condenser = config.Condenser{Type: "observation_masking", AttentionWindow: 2, Stride: 1}
	reports, err := Compare(t.Context(), []*config.Config{byPrice, byLimit, masking}, run, Options{Encoders: encoders})
	if err != nil {
		t.Fatal(err)
	}
	if r := reports[0]; !r.Short || r.Saved().USD != 0 || r.Steps != 11 || r.Named != 10 || r.Estimated == 0 {
		t.Errorf("by price: %+v", r)
	}
	if reports[1].Short || reports[1].Condensations == 0 || reports[2].Short {
		t.Errorf("by limit %+v, masking %+v", reports[1], reports[2])
	}
	played, err := Play(t.Context(), byPrice, run, Options{Encoders: encoders})
	if played.Short = true; err != nil || fmt.Sprintf("%+v", played) != fmt.Sprintf("%+v", reports[0]) {
		t.Errorf("played %v\n%+v\nwant\n%+v", err, played, reports[0])
	}
}
