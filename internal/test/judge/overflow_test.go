package judge_test

import (
	"fmt"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// TestWindowIsLearnedFromRefusal plays a run five times as long as the upstream's context window, which is not configured. The proxy must learn
// the window from the first refusal, and the agent must see no refusals.
func TestWindowIsLearnedFromRefusal(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	const window = 16384
	for _, stream := range []bool{false, true} {
		cfg := config.Default()
		cfg.Condenser.LLMConfig = "cheap"
		stage, err := judge.NewStage(*cfg, fakeupstream.Options{Keep: 16, ContextWindow: window}, judge.Encoders)
		if err != nil {
			t.Fatal(err)
		}
		report, err := judge.Play(t.Context(), demo.Sample(), judge.Options{
			URL: func(int) string { return stage.URL() }, Upstream: stage.Upstream, Model: "a-model-of-ours", Stream: stream,
			Window: window, Again: 5, Expect: judge.Expectations{Summarisers: []string{judge.Summariser}, PerRequest: 4},
		})
		if err != nil {
			t.Error(err)
		}
		for _, v := range report.Violations {
			t.Error(v)
		}
		if report.Overflows == 0 || report.Overflows > 3 || report.Condensations < 3 {
			t.Errorf("%d overflows, %d condensations", report.Overflows, report.Condensations)
		}
		if err := stage.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestReportedWindowIsUsed plays the same run with a server that reports its window: the history is condensed before it is too long.
func TestReportedWindowIsUsed(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	const model = "a-model-of-ours"
	cfg := config.Default()
	cfg.Condenser.LLMConfig = "cheap"
	stage, err := judge.NewStage(*cfg, fakeupstream.Options{Keep: 16, Windows: map[string]int{model: 16384}}, judge.Encoders)
	if err != nil {
		t.Fatal(err)
	}
	report, err := judge.Play(t.Context(), demo.Sample(), judge.Options{
		URL: func(int) string { return stage.URL() }, Upstream: stage.Upstream, Model: model, Window: 16384,
		Expect: judge.Expectations{Summarisers: []string{judge.Summariser}, PerRequest: 4},
	})
	for _, v := range append(report.Violations, err, stage.Close()) {
		if v != nil {
			t.Error(v)
		}
	}
	if report.Overflows > 0 || report.Condensations < 3 {
		t.Errorf("%d overflows, %d condensations", report.Overflows, report.Condensations)
	}
}

// TestSmallWindows plays the sample with small windows that the proxy does not know, under every condenser except noop. The messages
// that must stay fit, so every step is answered, after at most one refusal.
func TestSmallWindows(t *testing.T) {
	quick.Skip(t)
	for name, condenser := range judge.ForWindows() {
		windows := []int{8 << 10, 16 << 10, 32 << 10}
		if testing.Short() {
			windows = windows[:1]
		}
		for _, window := range windows {
			t.Run(fmt.Sprintf("%s at %d", name, window), func(t *testing.T) {
				t.Parallel()
				cfg := config.Default()
				cfg.Condenser = condenser
				stage, err := judge.NewStage(*cfg, fakeupstream.Options{Keep: 16, ContextWindow: window, IsSummary: judge.IsOwnCall}, judge.Encoders)
				if err != nil {
					t.Fatal(err)
				}
				report, err := judge.Play(t.Context(), demo.Sample(), judge.Options{
					URL: func(int) string { return stage.URL() }, Upstream: stage.Upstream, Model: "a-model-of-ours", Window: window,
					Expect: judge.Expectations{Summarisers: []string{judge.Summariser, "a-model-of-ours"}, MayFail: true, PerRequest: 4},
				})
				if err != nil {
					t.Error(err)
				}
				for _, v := range report.Violations {
					if condenser.Type == catalogue.TypeLLM { // the judge expects summaries
						t.Error(v)
					}
				}
				if report.Overflows > report.Steps/3 {
					t.Errorf("%d overflows in %d steps", report.Overflows, report.Steps)
				}
				if err := stage.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestSample plays the sample with every trigger.
func TestSample(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	for name, change := range map[string]func(*config.Config){
		"events": func(c *config.Config) { c.Condenser.MaxSize, c.Condenser.MinTokens = 30, 0 },
		"tokens": func(c *config.Config) { c.Condenser.MaxTokens = 12000 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Condenser.LLMConfig = "cheap"
			change(cfg)
			stage, err := judge.NewStage(*cfg, fakeupstream.Options{Keep: 16}, judge.Encoders)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := stage.Close(); err != nil {
					t.Error(err)
				}
			}()
			report, err := judge.Play(t.Context(), demo.Sample(), judge.Options{
				URL: func(int) string { return stage.URL() }, Upstream: stage.Upstream, Model: judge.Model, Again: 7, Stream: true,
				Expect: judge.Expectations{
					MaxSize: cfg.Condenser.MaxSize, MaxTokens: int(cfg.Condenser.MaxTokens), Summarisers: []string{judge.Summariser},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if report.Condensations < 3 {
				t.Errorf("%d condensations", report.Condensations)
			}
			for _, v := range append(report.Violations, stage.CheckLog(t.Context(), report)) {
				if v != nil {
					t.Error(v)
				}
			}
		})
	}
}
