package judge

import (
	"slices"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// ForWindows returns the condensers to test with small windows, by name.
func ForWindows() map[string]config.Condenser {
	all := map[string]config.Condenser{}
	for _, c := range condensetest.Sized(map[string]any{
		"max_size": 0, "max_tokens": 0.75, "keep_first": 2, "max_events": 60, "attention_window": 20, "max_event_length": 4000, "llm_config": "cheap",
	}) {
		all[c.Type] = c
	}
	all["pipeline"] = config.Condenser{Type: catalogue.TypePipeline, Condensers: []config.Condenser{
		all[catalogue.TypeLosslessTrim], all[catalogue.TypeToolOutputTrim], all[catalogue.TypeObservationMasking], all[catalogue.TypeLLM],
	}}
	return all
}

// TestRecordedSmallWindows plays recorded runs with windows that the proxy does not know, under every condenser: every request that can be made
// to fit is served. Each combination plays the beginnings of two runs, in rotation, whose system prompts leave room for a conversation.
func TestRecordedSmallWindows(t *testing.T) {
	recorded, n, cell := recordedRuns(t), 0, -1
	all := ForWindows()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, window := range []int{8 << 10, 16 << 10, 32 << 10} {
		runs := slices.DeleteFunc(slices.Clone(recorded), func(r replay.Run) bool { return !fits(r, window) })
		if len(runs) == 0 {
			t.Errorf("the system prompts of all %d runs are too long for a window of %d tokens", len(recorded), window)
			continue
		}
		for _, name := range names {
			if cell++; !Selected(cell) {
				continue
			}
			for range 2 {
				playInto(t, all[name], runs[n%len(runs)], window)
				n++
			}
		}
	}
}

// fits reports whether a window leaves room for a conversation: the system prompt, which is never shortened, takes less than three
// quarters.
func fits(r replay.Run, window int) bool {
	size := 0
	for _, m := range r.Messages {
		if who := readMessage(m).Role; who == "system" || who == "developer" {
			size += len(m)
		}
	}
	return size/4 < window*3/4
}

func playInto(t *testing.T, c config.Condenser, run replay.Run, window int) {
	t.Helper()
	cfg := config.Default()
	cfg.Condenser = c
	stage, err := NewStage(*cfg, fakeupstream.Options{Keep: 16, ContextWindow: window, IsSummary: IsOwnCall}, Encoders)
	if err != nil {
		t.Fatal(err)
	}
	report, err := Play(t.Context(), run, Options{
		URL: func(int) string { return stage.URL() }, Upstream: stage.Upstream, Model: "a-model-of-ours", Window: window,
		Expect: Expectations{Summarisers: []string{Summariser}, PerRequest: 4},
	})
	t.Logf("%s, %s at %d: %d steps, %d overflows, %d condensations", run.Name, nameOf(c), window, report.Steps, report.Overflows, report.Condensations)
	if err != nil {
		t.Errorf("%s, %s at %d: %v", run.Name, nameOf(c), window, err)
	}
	if err := stage.Close(); err != nil {
		t.Error(err)
	}
}
