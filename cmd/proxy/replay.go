package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// replayRuns plays recorded runs through the proxy against a strict fake upstream, checks every step and reports.
func replayRuns(ctx context.Context, args []string, out, errs io.Writer) error {
	fs := flags("replay", errs)
	file := fs.String("config", "", "configuration file: its condenser is used")
	maxSize := fs.Int("max-size", 0, "condense above so many events")
	maxTokens := fs.Float64("max-tokens", 0, "condense above so many tokens (at most 1: a share of the model's window)")
	stream := fs.Bool("stream", false, "ask for streamed answers")
	window := fs.Int("window", 0, "context window of the fake upstream, in tokens, which the proxy is not told (0: unlimited)")
	model := fs.String("model", replay.Model, "model to ask for; one that is not known has no known window")
	again := fs.Int("again", 10, "send every so many steps' request twice (0: never)")
	if err := parse(fs, args); err != nil {
		return err
	}
	cfg, err := replayConfig(*file, *maxSize, *maxTokens)
	if err != nil {
		return usageError{err}
	}
	paths, err := replay.Paths(fs.Args())
	if err != nil || len(paths) == 0 {
		return usageError{errors.Join(errors.New("dewpoint: replay takes files or folders of recorded runs"), err)}
	}
	expect := replay.Expectations{Summariser: replay.Summariser}
	if cfg.Condenser.Type == config.TypeLLM {
		expect.MaxSize, expect.MaxTokens = cfg.Condenser.MaxSize, int(cfg.Condenser.MaxTokens)
	}
	return playAll(ctx, out, cfg, paths, replay.Options{
		Model: *model, Window: *window, Stream: *stream, Again: *again, Expect: expect,
	})
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

// playAll plays each run on a stage of its own.
func playAll(ctx context.Context, out io.Writer, cfg *config.Config, paths []string, o replay.Options) error {
	var reports []replay.Report
	violations := 0
	for _, path := range paths {
		report, err := playOne(ctx, cfg, path, o)
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

func playOne(ctx context.Context, cfg *config.Config, path string, o replay.Options) (replay.Report, error) {
	run, err := replay.Load(path)
	if err != nil {
		return replay.Report{}, err
	}
	stage, err := replay.NewStage(*cfg, fakeupstream.Options{Keep: recordKept, ContextWindow: o.Window})
	if err != nil {
		return replay.Report{}, err
	}
	o.URL = func(int) string { return stage.URL() }
	o.Upstream = stage.Upstream
	report, err := replay.Play(ctx, run, o)
	if err == nil && cfg.Store.Content {
		if wrong := stage.CheckLog(ctx, run, report); wrong != nil {
			report.Violations = append(report.Violations, wrong)
		}
	}
	return report, errors.Join(err, stage.Close())
}

// recordKept is how many requests the fake upstream remembers: those of one step.
const recordKept = 16
