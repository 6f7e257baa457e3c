package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/source"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// encoders are shared by all tests: the race detector makes loading a vocabulary slow.
var encoders = tokenize.New()

// settings returns the settings for replays under a configuration.
func settings(t *testing.T, text string) *config.Config {
	t.Helper()
	from, err := source.Load(source.Input{File: file(t, "dewpoint.yaml", text)})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := replay.Settings(from, replay.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func play(t *testing.T, cfg *config.Config, run replay.Run, model string) replay.Report {
	t.Helper()
	r, err := replay.Play(t.Context(), cfg, run, replay.Options{Model: model, Encoders: encoders})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestNoopSavesNothing: without condensing, every figure is exactly the same with and without the proxy.
func TestNoopSavesNothing(t *testing.T) {
	t.Parallel()
	run := demo.Sample()
	r := play(t, settings(t, "condenser: {type: noop}"), run, "")
	if !reflect.DeepEqual(r.With, r.Without) {
		t.Errorf("without %+v, with %+v", r.Without, r.With)
	}
	if r.Saved() != (replay.Money{}) || r.SavedShare() != 0 || r.Own.Calls != 0 || r.Condensations != 0 {
		t.Errorf("saved %+v, own %+v, %d condensations", r.Saved(), r.Own, r.Condensations)
	}
	if r.Without.Cost.USD == 0 || r.Without.Cached == 0 || r.Steps != run.Steps() {
		t.Errorf("nothing was measured: %+v", r)
	}
}

// TestCostWithoutTheProxy computes the cost of a run without the proxy in another way. Since each request begins with the one before it, all
// tokens of the earlier request come from the cache if there are at least 1,024.
func TestCostWithoutTheProxy(t *testing.T) {
	t.Parallel()
	run := demo.Sample()
	encoder, err := encoders.Encoder(tokenize.O200k)
	if err != nil {
		t.Fatal(err)
	}
	tokens := func(raw json.RawMessage) int {
		content, err := chat.New(chat.Options{}).Read(raw)
		if err != nil {
			t.Fatal(err)
		}
		return encoder.Message(content)
	}
	var want struct{ input, cached, fresh, output int }
	history, before := 3+encoder.Count(string(run.Tools)), 0 // 3 tokens begin each answer
	for i, m := range append(run.Messages, run.Final) {
		n := tokens(m)
		if strings.Contains(string(m), `"role":"assistant"`) && i > 0 {
			want.input += history
			want.output += n
			if before >= 1024 {
				want.cached += before
			}
			before = history
		}
		history += n
	}
	want.fresh = want.input - want.cached
	r := play(t, settings(t, "condenser: {type: noop}"), run, "gpt-4o")
	got := r.Without
	if got.Input != want.input || got.Cached != want.cached || got.Output != want.output {
		t.Errorf("got %+v, want %+v", got, want)
	}
	usd := (float64(want.fresh)*2.5 + float64(want.cached)*1.25 + float64(want.output)*10) / 1e6
	if got.Cost.Unknown || math.Abs(got.Cost.USD-usd) > 1e-9 {
		t.Errorf("it costs %v, want %v", got.Cost, usd)
	}
}

// TestExcerptsByPriceSave: the sample is long enough for excerpts to pay off, and the figures of a report agree with each other.
func TestExcerptsByPriceSave(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	cfg := settings(t, "condenser: {type: excerpts, trigger: economics}")
	r := play(t, cfg, demo.Sample(), "gpt-4o")
	if r.Condensations == 0 || r.With.Input >= r.Without.Input || r.Own.Calls != 0 {
		t.Errorf("%+v", r)
	}
	if share := r.SavedShare(); share < 0.1 || share > 0.9 {
		t.Errorf("saved %.1f%%", 100*share)
	}
	price := model.Price{Input: 2.5, CachedInput: 1.25, Output: 10}
	for _, b := range []replay.Bill{r.Without, r.With} {
		if want := price.Call(model.Usage{Input: b.Input, Cached: b.Cached, Output: b.Output}); math.Abs(b.Cost.USD-want) > 1e-9 {
			t.Errorf("%+v should cost %v", b, want)
		}
	}
	if got := r.Without.Cost.USD - r.With.Cost.USD; got != r.Saved().USD {
		t.Errorf("saved %v, want %v", r.Saved(), got)
	}
	again, err := replay.Play(t.Context(), cfg, demo.Sample(), replay.Options{Model: "gpt-4o", Encoders: encoders, Each: func(s replay.Step) {
		if n := len(s.Condensations); n > 0 && (s.Condensations[n-1].TokensAfter != s.TokensForwarded || s.Condensations[0].TokensBefore <= s.TokensForwarded) {
			t.Errorf("step %+v", s)
		}
	}})
	if err != nil || !reflect.DeepEqual(again, r) {
		t.Errorf("a second replay differs: %+v, then %+v, %v", r, again, err)
	}
}

// TestOwnCallsArePricedByTheirModel: a summariser's calls cost the summariser's price, and calls that reuse the agent's prompt cost the price of
// the agent's model.
func TestOwnCallsArePricedByTheirModel(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	f := func(condenser, called string, price model.Price) {
		t.Helper()
		r := play(t, settings(t, `
llms: {cheap: {model: gpt-4o-mini, api: responses}}
models: {gpt-4o: {price: {input: 10, cached_input: 1, cache_write: 12.5, output: 50}}}
condenser: `+condenser), demo.Sample(), "gpt-4o")
		if r.Own.Calls == 0 || !reflect.DeepEqual(r.Own.Models, []string{called}) {
			t.Fatalf("own calls %+v", r.Own)
		}
		usage := model.Usage{Input: r.Own.Input, Cached: r.Own.Cached, Output: r.Own.Output, Written: r.Own.Input - r.Own.Cached}
		if want := price.Call(usage); math.Abs(r.Own.Cost.USD-want) > 1e-9 {
			t.Errorf("%s: own calls %+v should cost %v", condenser, r.Own, want)
		}
		if want := r.Without.Cost.USD - r.With.Cost.USD - r.Own.Cost.USD; math.Abs(r.Saved().USD-want) > 1e-9 {
			t.Errorf("%s: saved %v, want %v", condenser, r.Saved(), want)
		}
	}
	f("{type: llm, llm_config: cheap, max_size: 40, min_tokens: 0}", "gpt-4o-mini", model.Price{Input: 0.15, CachedInput: 0.075, CacheWrite: 0.15, Output: 0.6})
	f("{type: llm, max_size: 40, min_tokens: 0}", "gpt-4o", model.Price{Input: 10, CachedInput: 1, CacheWrite: 12.5, Output: 50})
}

// TestEveryCondenser: a run can be replayed under each condenser, and every answer of the stand-in is usable. If a record replaces messages, the
// report has the record as it was forwarded.
func TestEveryCondenser(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	for condenser, replacement := range map[string]string{
		"{type: llm, max_size: 20, min_tokens: 0}":                                         "summary", // behind the agent's prompt, or not
		"{type: llm, max_size: 20, min_tokens: 0, llm_config: cheap}":                      "summary",
		"{type: llm, max_size: 20, min_tokens: 0, llm_config: small}":                      "summary", // in parts
		"{type: llm, max_size: 20, min_tokens: 0, llm_config: cheap, recall: true}":        "summary",
		"{type: structured_summary, max_size: 20, min_tokens: 0, llm_config: cheap}":       "summary",
		"{type: llm_attention, max_size: 20, min_tokens: 0, llm_config: cheap}":            "plain",
		"{type: excerpts, max_size: 20, min_tokens: 0}":                                    "excerpts",
		"{type: amortized_forgetting, max_size: 20, min_tokens: 0}":                        "plain",
		"{type: pipeline, condensers: [{type: tool_output_trim, max_event_length: 1000}]}": "trim",
		"{type: llm, max_size: 20, min_tokens: 0, llm_config: cheap, wait: never}":         "summary",
		"{type: llm, max_size: 20, min_tokens: 0, llm_config: claude, background_at: 0.5}": "summary",
	} {
		t.Run(condenser, func(t *testing.T) {
			t.Parallel()
			r := play(t, settings(t, `
llms:
  cheap: {model: gpt-4o-mini}
  small: {model: a-small-model, max_output: 1000}
  claude: {model: claude-sonnet-4-5, api: messages, base_url: "https://api.anthropic.com/v1", api_key: k}
models: {a-small-model: {context_window: 8000}}
condenser: `+condenser), judge.Beginning(demo.Sample(), 50), "")
			if r.Condensations == 0 || len(r.Failed) > 0 || len(r.Records) != r.Condensations {
				t.Errorf("%d condensations, %d of them told, failed: %v", r.Condensations, len(r.Records), r.Failed)
			}
			for _, c := range r.Records {
				recorded := c.Replacement == "summary" || c.Replacement == "excerpts"
				if c.Replacement != replacement || recorded != (c.Record != "") || c.TokensAfter >= c.TokensBefore || c.Step < 1 || c.Reason == "" {
					t.Errorf("%+v", c)
				}
				if replacement == "summary" && !strings.Contains(c.Record, "Reading stock/reserve.go.") {
					t.Errorf("the record does not quote the oldest event:\n%s", c.Record)
				}
			}
		})
	}
}

// TestLargeRequestsAreCounted: requests that exceed the model's window are replayed and counted.
func TestLargeRequestsAreCounted(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	cfg := settings(t, "models: {a-model: {context_window: 50000}}\ncondenser: {type: excerpts}")
	r := play(t, cfg, demo.Sample(), "a-model")
	if r.TooLong < 15 || r.TooLong > 25 || !r.Without.Cost.Unknown || !r.Saved().Unknown {
		t.Errorf("%d of %d requests are too long; without %+v", r.TooLong, r.Steps, r.Without)
	}
}

func TestPlayEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	steps := 0
	_, err := replay.Play(ctx, settings(t, ""), demo.Sample(), replay.Options{Encoders: encoders, Each: func(s replay.Step) {
		if steps = s.Number; steps == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || steps != 3 || !strings.Contains(fmt.Sprint(err), "replay sample: step 4: ") {
		t.Errorf("after %d steps: %v", steps, err)
	}
}

func TestLoad(t *testing.T) {
	const asks, answers = `{"role": "user", "content": "x"}`, `{"role": "assistant", "content": "y"}`
	f := func(text, name string, steps int, says string) {
		t.Helper()
		run, err := replay.Load(file(t, "run.json", text))
		if says != "" {
			if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "run.json") || !strings.Contains(err.Error(), "docs/replay.md") {
				t.Errorf("%s: %v", text, err)
			}
			return
		}
		if err != nil || run.Name != name || run.Steps() != steps {
			t.Errorf("%s: %q with %d steps, %v", text, run.Name, run.Steps(), err)
		}
	}
	f(`{"id": "a", "messages": [`+asks+`], "final_response": `+answers+`}`, "a", 1, "")
	f(`{"messages": [`+asks+`, `+answers+`, `+asks+`], "final_response": null}`, "run.json", 1, "")
	f(`{"messages": [`+answers+`, `+asks+`, `+answers+`]}`, "run.json", 1, "")
	f(`{`, "", 0, "unexpected end")
	f(`{}`, "", 0, "no answer")
	f(`{"messages": [`+asks+`]}`, "", 0, "no answer")
	f(`{"messages": [`+answers+`]}`, "", 0, "no answer")
}

func TestPaths(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.json", "a.json", "c.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	single := file(t, "single.txt", "")
	got, err := replay.Paths([]string{dir, single})
	if want := []string{filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json"), single}; err != nil || !reflect.DeepEqual(got, want) && !reflect.DeepEqual(got, append(want[2:], want[:2]...)) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := replay.Paths([]string{filepath.Join(dir, "absent")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
