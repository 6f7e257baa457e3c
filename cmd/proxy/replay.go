package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/judge"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// replayRuns replays recorded runs through the proxy against a strict fake upstream, checks every step and prints a report.
func replayRuns(ctx context.Context, args []string, out, errs io.Writer) error {
	fs := flags("replay", errs)
	file := fs.String("config", "", "configuration file with the condenser to use, and the llms and models that it needs")
	tenant := fs.String("tenant", "", "the tenant whose condenser to use (default: the only one, or else the condenser of tenants without their own)")
	maxSize := fs.Int("max-size", 0, "condense above this number of events (0: as configured)")
	maxTokens := fs.Float64("max-tokens", 0, "condense above this number of tokens (up to 1: share of the model's window; 0: as configured)")
	stream := fs.Bool("stream", false, "request streamed answers")
	window := fs.Int("window", 0, "context window of the fake upstream, in tokens, not known to the proxy (0: unlimited)")
	model := fs.String("model", judge.Model, "requested model; an unknown model has no known window")
	seal := fs.String("sealed", "", fmt.Sprintf("seal the reasoning in answers, and refuse it if separated from the messages it is bound to: one of %v", fakeupstream.Seals()))
	sealSteps := fs.String("sealed-steps", "each", "which answers are sealed: each, some or first")
	protocol := protocolFlag(fs)
	again := fs.Int("again", 10, "repeat the request of every Nth step (0: never)")
	if err := parse(fs, args); err != nil {
		return err
	}
	if min(*window, *again) < 0 {
		return usageError{errors.New("dewpoint: --window and --again take a number from 0 on")}
	}
	cfg, err := replayConfig(*file, *tenant, *maxSize, *maxTokens)
	if err != nil {
		return usageError{err}
	}
	paths, err := replay.Paths(fs.Args())
	if err == nil && len(paths) == 0 {
		err = errors.New("replay takes files or folders of recorded runs")
	}
	if err != nil {
		return usageError{fmt.Errorf("dewpoint: %w", err)}
	}
	up := fakeupstream.Options{Keep: keptRequests, ContextWindow: *window, Seals: fakeupstream.Seal(*seal), IsSummary: judge.IsOwnCall}
	if up.SealWhen, err = sealWhen(*seal, *sealSteps); err != nil {
		return usageError{err}
	}
	return playAll(ctx, out, cfg, paths, up, judge.Options{
		Model: *model, Window: *window, Stream: *stream, Again: *again, Expect: expectations(cfg, *model, *window), Sealed: *seal != "", Protocol: *protocol,
	})
}

// protocolFlag adds the flag --protocol.
func protocolFlag(fs *flag.FlagSet) *string {
	name := "chat"
	fs.Func("protocol", "wire protocol: chat, messages or responses (default chat)", func(given string) error {
		if name = given; !slices.Contains([]string{"chat", "messages", "responses"}, given) {
			return errors.New("want chat, messages or responses")
		}
		return nil
	})
	return &name
}

// replayConfig returns a configuration with what a replay needs of the file: the rest would limit requests, add to them, or call servers.
func replayConfig(file, tenant string, maxSize int, maxTokens float64) (*config.Config, error) {
	from, err := load(configSource{file: file}, nil)
	if err != nil {
		return nil, err
	}
	cfg := config.Default()
	cfg.LLMs, cfg.Models, cfg.Session, cfg.Store.Content = from.LLMs, from.Models, from.Session, from.Store.Content
	if cfg.Condenser, err = condenserOf(from, tenant); err != nil {
		return nil, err
	}
	cfg.Condenser.MaxSize = cmp.Or(maxSize, cfg.Condenser.MaxSize)
	cfg.Condenser.MaxTokens = cmp.Or(maxTokens, cfg.Condenser.MaxTokens)
	if err := cfg.Validate(); err != nil {
		return nil, listed(err)
	}
	return cfg, nil
}

func condenserOf(cfg *config.Config, tenant string) (config.Condenser, error) {
	for _, t := range cfg.EveryTenant() {
		if t.Name == tenant || tenant == "" && len(cfg.Tenants) <= 1 {
			return cfg.CondenserFor(t), nil
		}
	}
	if tenant != "" {
		return config.Condenser{}, fmt.Errorf("dewpoint: --tenant %s: the configuration has no such tenant", tenant)
	}
	return cfg.Condenser, nil
}

// expectations returns what the configuration guarantees.
func expectations(cfg *config.Config, model string, window int) judge.Expectations {
	c, e := cfg.Condenser, judge.Expectations{MayFail: window > 0} // the summariser's window may be too small, too
	for _, stage := range c.Stages() {
		e.Summarisers = append(e.Summarisers, cmp.Or(cfg.LLMs[stage.LLMConfig].Model, model))
		e.HiddenTools = e.HiddenTools || stage.AgentRequest || stage.Recall
		switch stage.Type {
		case config.TypeObservationMasking, config.TypeBrowserOutput, config.TypeRecentEvents:
			e.Moving = true
		case config.TypeAmortizedForgetting, config.TypeConversationWindow, config.TypeLLMAttention, config.TypeCustom:
			e.Plain = true
		}
	}
	if window > 0 {
		e.Summarisers = append(e.Summarisers, model)
	}
	if c.Type == config.TypeLLM && c.MinTokens == 0 && len(c.PerModel) == 0 {
		e.MaxSize, e.MaxTokens = c.MaxSize, int(c.MaxTokens)
	}
	return e
}

// sealWhen returns which answers are sealed; nil means each.
func sealWhen(form, steps string) (func(n int) bool, error) {
	if form != "" && !slices.Contains(fakeupstream.Seals(), fakeupstream.Seal(form)) {
		return nil, fmt.Errorf("dewpoint: --sealed %s: want one of %v", form, fakeupstream.Seals())
	}
	switch steps {
	case "each":
		return nil, nil
	case "some":
		return func(n int) bool { return n%3 == 1 }, nil
	case "first":
		return func(n int) bool { return n == 0 }, nil
	}
	return nil, fmt.Errorf("dewpoint: --sealed-steps %s: want each, some or first", steps)
}

// playAll replays the runs, each with its own proxy and fake upstream.
func playAll(ctx context.Context, out io.Writer, cfg *config.Config, paths []string, up fakeupstream.Options, o judge.Options) error {
	var reports []judge.Report
	violations := 0
	for _, path := range paths {
		report, err := playOne(ctx, cfg, path, up, o)
		if err != nil {
			return err
		}
		for _, v := range report.Violations {
			fmt.Fprintf(out, "VIOLATION %s: %v\n", report.Name, v)
		}
		violations += len(report.Violations)
		reports = append(reports, report)
	}
	if err := judge.Table(out, reports); err != nil {
		return err
	}
	if violations > 0 {
		return fmt.Errorf("%d violations", violations)
	}
	return nil
}

func playOne(ctx context.Context, cfg *config.Config, path string, up fakeupstream.Options, o judge.Options) (judge.Report, error) {
	run, err := replay.Load(path)
	if err != nil {
		return judge.Report{}, err
	}
	stage, err := judge.NewStage(*cfg, up, nil)
	if err != nil {
		return judge.Report{}, err
	}
	o.URL = func(int) string { return stage.URL() }
	o.Upstream = stage.Upstream
	report, err := judge.Play(ctx, run, o)
	if err == nil && cfg.Store.Content {
		if wrong := stage.CheckLog(ctx, report); wrong != nil {
			report.Violations = append(report.Violations, wrong)
		}
	}
	return report, errors.Join(err, stage.Close())
}

// keptRequests is how many requests the fake upstream keeps. It is enough for one step.
const keptRequests = 16

// runDemo replays the built-in sample.
func runDemo(ctx context.Context, args []string, out, errs io.Writer) error {
	fs := flags("demo", errs)
	protocol := protocolFlag(fs)
	if err := parse(fs, args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return usageError{fmt.Errorf("dewpoint: demo takes no arguments")}
	}
	return demo.Play(ctx, out, *protocol)
}
