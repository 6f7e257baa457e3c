package judge

import (
	"encoding/json"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// Encoders are shared by the stages of all tests: the race detector makes loading a vocabulary slow.
var Encoders = tokenize.New()

// recordedRuns returns the beginnings of the selected recorded runs.
func recordedRuns(t *testing.T) []replay.Run {
	t.Helper()
	runs, err := Recorded()
	switch {
	case err != nil:
		t.Fatal(err)
	case len(runs) == 0:
		t.Skip("SKIPPED: set " + RunsVariable + " to a folder of recorded runs; generated runs prove the same in this package")
	}
	for i := range runs {
		runs[i] = Beginning(runs[i], matrixLength)
	}
	return runs
}

// matrixLength is the number of messages of a run to play: enough for several condensations.
const matrixLength = 90

// repeatsCalls reports whether the run's calls reuse ids.
func repeatsCalls(r replay.Run) bool {
	seen := map[string]bool{}
	for _, m := range r.Messages {
		var said struct {
			ToolCalls []toolCall `json:"tool_calls"`
		}
		_ = json.Unmarshal(m, &said)
		for _, c := range said.ToolCalls {
			if seen[c.ID] {
				return true
			}
			seen[c.ID] = true
		}
	}
	return false
}

// sized returns condensers for runs of recorded length: one of each type, and pipelines of a shaping condenser and one that calls a
// model.
func sized() []config.Condenser {
	all := condensetest.Sized(map[string]any{
		"max_size": 30, "keep_first": 2, "max_events": 30, "attention_window": 20, "max_event_length": 4000, "llm_config": "cheap",
	})
	one := map[string]config.Condenser{}
	for _, c := range all {
		one[c.Type] = c
	}
	pair := func(a, b string) config.Condenser {
		return config.Condenser{Type: catalogue.TypePipeline, Condensers: []config.Condenser{one[a], one[b]}}
	}
	return append(all,
		pair(catalogue.TypeToolOutputTrim, catalogue.TypeLLM), pair(catalogue.TypeObservationMasking, catalogue.TypeLLM),
		pair(catalogue.TypeRecentEvents, catalogue.TypeLLMAttention), pair(catalogue.TypeBrowserOutput, catalogue.TypeStructuredSummary))
}

// TestRecordedMatrix plays recorded runs under every condenser, with sealed reasoning in every form on each answer, on some answers, and on the
// first one. No request is refused, and the run is condensed as often as without sealed reasoning. Each combination plays the beginning of one
// run, in rotation, so that each run is played several times. Playing all runs in all combinations would take hours.
func TestRecordedMatrix(t *testing.T) {
	runs, all := recordedRuns(t), sized()
	cells := len(all) * len(patterns())
	if cells*len(fakeupstream.Seals()) < len(runs) {
		t.Fatalf("%d cells for %d runs", cells, len(runs))
	}
	for form, seal := range fakeupstream.Seals() {
		t.Run(string(seal), func(t *testing.T) {
			t.Parallel()
			steps, condensations := 0, 0
			for n, c := range all {
				for pattern, when := range patterns() {
					cell := form*cells + n*len(patterns()) + pattern
					if !Selected(cell) {
						continue
					}
					run := runs[cell%len(runs)]
					if repeatsCalls(run) { // upstream cannot distinguish which of the calls had reasoning
						when = patterns()[0]
					}
					want, got := playAlone(t, c, run, "", nil), playAlone(t, c, run, seal, when)
					if got.Condensations != want.Condensations {
						t.Errorf("%s, %s, pattern %d: %d condensations, %d without", run.Name, nameOf(c), pattern, got.Condensations, want.Condensations)
					}
					steps, condensations = steps+got.Steps, condensations+got.Condensations
				}
			}
			t.Logf("%d cells, %d steps, %d condensations", cells, steps, condensations)
		})
	}
}

// playAlone plays a run on a separate stage, since recorded runs use the same ids for their calls. A refused request is an error.
func playAlone(t *testing.T, c config.Condenser, run replay.Run, form fakeupstream.Seal, when func(int64) bool) Report {
	t.Helper()
	cfg := config.Default()
	cfg.Condenser = c
	up := fakeupstream.Options{Keep: 16, Seals: form}
	if when != nil {
		up.SealWhen = func(n int) bool { return when(int64(n)) }
	}
	stage, err := NewStage(*cfg, up, Encoders)
	if err != nil {
		t.Fatal(err)
	}
	report, err := Play(t.Context(), run, Options{
		URL: func(int) string { return stage.URL() }, Upstream: stage.Upstream, Model: Model, Stream: true, Sealed: form != "",
		Expect: Expectations{Summarisers: []string{Summariser}},
	})
	if err != nil {
		t.Errorf("%s, %s: %v", nameOf(c), form, err)
	}
	if err := stage.Close(); err != nil {
		t.Error(err)
	}
	return report
}
