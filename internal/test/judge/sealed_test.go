package judge_test

import (
	"slices"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// sealedSteps selects the answers of a run that have sealed reasoning.
func sealedSteps() map[string]func(n int) bool {
	return map[string]func(n int) bool{
		"each":  nil,
		"some":  func(n int) bool { return n%3 == 1 },
		"first": func(n int) bool { return n == 0 },
	}
}

// condensers returns a condenser of each kind, small enough to condense the sample: whole runs take long, and generated ones are played under
// every type in the catalogue.
func condensers() map[string]config.Condenser {
	return map[string]config.Condenser{
		"llm":                  {Type: catalogue.TypeLLM, LLMConfig: "cheap", MaxSize: 30, KeepFirst: 2},
		"amortized_forgetting": {Type: catalogue.TypeAmortizedForgetting, MaxSize: 30, KeepFirst: 2},
		"excerpts":             {Type: catalogue.TypeExcerpts, MaxSize: 30, KeepFirst: 2},
		"recent_events":        {Type: catalogue.TypeRecentEvents, MaxEvents: 30, KeepFirst: 2},
		"observation_masking":  {Type: catalogue.TypeObservationMasking, AttentionWindow: 10},
		"tool_output_trim":     {Type: catalogue.TypeToolOutputTrim, MaxEventLength: 500},
		"pipeline": {Type: catalogue.TypePipeline, Condensers: []config.Condenser{
			{Type: catalogue.TypeLosslessTrim}, {Type: catalogue.TypeToolOutputTrim, MaxEventLength: 500}, {Type: catalogue.TypeObservationMasking, AttentionWindow: 20},
			{Type: catalogue.TypeLLM, LLMConfig: "cheap", MaxSize: 30, KeepFirst: 2},
		}},
	}
}

// TestSealedReasoning plays the sample under every kind of condenser with sealed reasoning of every binding. The upstream refuses
// reasoning without the messages that it is bound to, and the run condenses like a plain one.
func TestSealedReasoning(t *testing.T) {
	quick.Skip(t)
	few := testing.Short()
	for name, condenser := range condensers() {
		if few && !slices.Contains([]string{"llm", "excerpts", "pipeline"}, name) {
			continue // make full plays them all
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain := playSealed(t, condenser, "", nil)
			for i, form := range fakeupstream.Seals() {
				for steps, when := range sealedSteps() {
					if rolls := condenser.LLMConfig != ""; !rolls && (steps != "some" || few && i%2 != len(name)%2) {
						continue // these condense at every step
					} else if rolls && few && steps != [...]string{"some", "each", "first"}[i%3] {
						continue
					}
					if got := playSealed(t, condenser, form, when); got != plain {
						t.Errorf("%s on %s: %d condensations, %d without", form, steps, got, plain)
					}
				}
			}
		})
	}
}

// playSealed plays the sample and returns the number of its condensations. A refused request is an error.
func playSealed(t *testing.T, condenser config.Condenser, form fakeupstream.Seal, when func(int) bool) int {
	t.Helper()
	cfg := config.Default()
	cfg.Condenser = condenser
	stage, err := judge.NewStage(*cfg, fakeupstream.Options{Keep: 16, Seals: form, SealWhen: when}, judge.Encoders)
	if err != nil {
		t.Fatal(err)
	}
	report, err := judge.Play(t.Context(), demo.Sample(), judge.Options{
		URL: func(int) string { return stage.URL() }, Upstream: stage.Upstream, Model: judge.Model, Stream: true, Sealed: form != "",
		Expect: judge.Expectations{Summarisers: []string{judge.Summariser}},
	})
	if err != nil {
		t.Errorf("%s: %v", form, err)
	}
	if err := stage.Close(); err != nil {
		t.Error(err)
	}
	return report.Condensations
}
