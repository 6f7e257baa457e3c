package judge

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// browsing returns a long run of calls, every other one of a browser. Results are long, some too long, and some repeat an earlier one.
func browsing(steps int) replay.Run {
	random := rand.New(rand.NewPCG(5, 5))
	run := replay.Run{
		Name: "browsing", Final: marshal(msg("assistant", "All is read.")),
		Messages: []json.RawMessage{marshal(msg("system", "You read papers.")), marshal(msg("user", "Read everything."))},
	}
	var texts []string
	for n := range steps {
		var text strings.Builder
		for range 20 + random.IntN(60) + n%7/6*200 {
			fmt.Fprintf(&text, "paper %d says that %d follows from %d, and no more\n", n, random.IntN(1e6), random.IntN(1e6))
		}
		if texts = append(texts, text.String()); n%5 == 4 {
			text.WriteString(texts[n-3])
		}
		id, call := fmt.Sprintf("call_%d", n), msg("assistant", "")
		call["tool_calls"] = []any{map[string]any{"id": id, "type": "function", "function": map[string]string{
			"name": []string{"look", "browser_navigate"}[n%2], "arguments": fmt.Sprintf(`{"url":"https://example.com/%d"}`, n),
		}}}
		run.Messages = append(run.Messages, marshal(call), marshal(map[string]any{"role": "tool", "tool_call_id": id, "content": text.String()}))
	}
	return run
}

// TestTrimsGoWithCondensations: if condensing depends on prices, forwarded messages change only with a condensation, whatever the pipeline
// trims. New messages are trimmed before they are forwarded for the first time.
func TestTrimsGoWithCondensations(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	rolling, masking := catalogue.Default(catalogue.TypeExcerpts), catalogue.Default(catalogue.TypeObservationMasking)
	rolling.Trigger, masking.AttentionWindow, masking.Stride = catalogue.TriggerEconomics, 8, 1
	cfg := config.Default()
	cfg.Condenser = catalogue.Default(catalogue.TypePipeline)
	cfg.Condenser.Condensers = []config.Condenser{
		catalogue.Default(catalogue.TypeLosslessTrim), catalogue.Default(catalogue.TypeToolOutputTrim),
		catalogue.Default(catalogue.TypeBrowserOutput), masking, rolling,
	}
	stage, err := NewStage(*cfg, fakeupstream.Options{Keep: 16}, Encoders)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stage.Close(); err != nil {
			t.Error(err)
		}
	}()
	seen := map[string]int{"<MASKED>": 0, "Content omitted": 0, "left out here": 0, "economics;": 0}
	var last Step
	look := func(s Step) {
		if !slices.ContainsFunc(s.condensed, func(c string) bool { return !isArrival(c) }) {
			if n := len(last.forwarded); len(s.forwarded) < n || !slices.EqualFunc(last.forwarded, s.forwarded[:n], slices.Equal) {
				t.Errorf("step %d: messages forwarded before have changed: %q", s.Number, s.condensed)
			}
		}
		for what := range seen {
			seen[what] += strings.Count(fmt.Sprintf("%s %q", s.forwarded, s.condensed), what)
		}
		last = s
	}
	if _, err = Play(t.Context(), browsing(90), Options{
		URL: func(int) string { return stage.URL() }, Upstream: stage.Upstream, Model: Model, Each: look,
	}); err != nil {
		t.Fatal(err)
	}
	for what, n := range seen {
		if n < 3 {
			t.Errorf("%q: %d times", what, n)
		}
	}
}
