package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// replayRuns replays recorded runs through the proxy against a strict fake upstream, checks every step and prints a report.
func replayRuns(ctx context.Context, args []string, out, errs io.Writer) error {
	fs := flags("replay", errs)
	file := fs.String("config", "", "configuration file with the condenser to use")
	maxSize := fs.Int("max-size", 0, "condense above this number of events")
	maxTokens := fs.Float64("max-tokens", 0, "condense above this number of tokens (up to 1: share of the model's window)")
	stream := fs.Bool("stream", false, "request streamed answers")
	window := fs.Int("window", 0, "context window of the fake upstream, in tokens, not known to the proxy (0: unlimited)")
	model := fs.String("model", replay.Model, "requested model; an unknown model has no known window")
	seal := fs.String("sealed", "", fmt.Sprintf("seal the reasoning in answers, and refuse it if separated from the messages it is bound to: one of %v", fakeupstream.Seals()))
	sealSteps := fs.String("sealed-steps", "each", "which answers are sealed: each, some or first")
	protocol := protocolFlag(fs)
	again := fs.Int("again", 10, "repeat the request of every Nth step (0: never)")
	if err := parse(fs, args); err != nil {
		return err
	}
	cfg, err := replayConfig(*file, *maxSize, *maxTokens)
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
	expect := replay.Expectations{Summariser: replay.Summariser}
	if *window > 0 { // the summariser's window may be too small, too
		expect.Fallback = *model
	}
	if cfg.Condenser.Type == config.TypeLLM {
		expect.MaxSize, expect.MaxTokens = cfg.Condenser.MaxSize, int(cfg.Condenser.MaxTokens)
	}
	up := fakeupstream.Options{Keep: keptRequests, ContextWindow: *window, Seals: fakeupstream.Seal(*seal), IsSummary: replay.IsOwnCall}
	if up.SealWhen, err = sealWhen(*seal, *sealSteps); err != nil {
		return usageError{err}
	}
	return playAll(ctx, out, cfg, paths, up, replay.Options{
		Model: *model, Window: *window, Stream: *stream, Again: *again, Expect: expect, Sealed: *seal != "", Protocol: *protocol,
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

func replayConfig(file string, maxSize int, maxTokens float64) (*config.Config, error) {
	cfg, err := load(file, nil)
	if err != nil {
		return nil, err
	}
	if cfg.Condenser.Type != config.TypeLLM {
		return cfg, nil
	}
	cfg.Condenser.LLMConfig = "cheap"
	if maxSize > 0 {
		cfg.Condenser.MaxSize = maxSize
	}
	if maxTokens > 0 {
		cfg.Condenser.MaxTokens = maxTokens
	}
	return cfg, nil
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
func playAll(ctx context.Context, out io.Writer, cfg *config.Config, paths []string, up fakeupstream.Options, o replay.Options) error {
	var reports []replay.Report
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
	if err := replay.Table(out, reports); err != nil {
		return err
	}
	if violations > 0 {
		return fmt.Errorf("%d violations", violations)
	}
	return nil
}

func playOne(ctx context.Context, cfg *config.Config, path string, up fakeupstream.Options, o replay.Options) (replay.Report, error) {
	run, err := replay.Load(path)
	if err != nil {
		return replay.Report{}, err
	}
	stage, err := replay.NewStage(*cfg, up, nil)
	if err != nil {
		return replay.Report{}, err
	}
	o.URL = func(int) string { return stage.URL() }
	o.Upstream = stage.Upstream
	report, err := replay.Play(ctx, run, o)
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
