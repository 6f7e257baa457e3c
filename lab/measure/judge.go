package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/source"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// judged is what the judge command is asked for.
type judged struct {
	config   string // file
	choice   replay.Choice
	up       fakeupstream.Options
	play     judge.Options
	recorded []replay.Run
}

// judgeRuns plays recorded runs through the proxy against the strict fake upstream. It checks every step, and prints the violations and a
// table. A violation is an error.
func judgeRuns(ctx context.Context, args []string, out io.Writer) error {
	asked, err := parseJudged(args)
	if err != nil {
		return err
	}
	from, err := source.Load(source.Input{File: asked.config, Env: os.Environ()})
	if err != nil {
		return err
	}
	if asked.config == "" { // the condenser of which most can be judged
		from.Condenser = catalogue.Default(catalogue.TypeLLM)
	}
	cfg, err := replay.Settings(from, asked.choice)
	if err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	asked.play.Expect = expectations(cfg, asked.play.Model, asked.play.Window)
	var reports []judge.Report
	violations := 0
	for _, run := range asked.recorded {
		report, err := asked.judge(ctx, cfg, run)
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

// parseJudged parses the command line, and loads the runs.
func parseJudged(args []string) (j judged, err error) {
	fs := flag.NewFlagSet("judge", flag.ContinueOnError)
	fs.StringVar(&j.config, "config", "", "configuration file with the condenser to use, and the llms and models that it needs")
	j.choice.Flags(fs)
	fs.BoolVar(&j.play.Stream, "stream", false, "request streamed answers")
	fs.IntVar(&j.play.Window, "window", 0, "context window of the fake upstream, in tokens, not known to the proxy (0: unlimited)")
	fs.StringVar(&j.play.Model, "model", judge.Model, "requested model; an unknown model has no known window")
	seal := fs.String("sealed", "", fmt.Sprintf("seal the reasoning in answers, and refuse it if separated from the messages it is bound to: one of %v", fakeupstream.Seals()))
	steps := fs.String("sealed-steps", "each", "which answers are sealed: each, some or first")
	fs.StringVar(&j.play.Protocol, "protocol", "chat", "wire protocol: chat, messages, responses or gemini")
	fs.IntVar(&j.play.Again, "again", 10, "repeat the request of every Nth step (0: never)")
	if err := fs.Parse(args); err != nil {
		return j, err
	}
	if min(j.play.Window, j.play.Again) < 0 {
		return j, errors.New("-window and -again take a number from 0 on")
	}
	j.up = fakeupstream.Options{Keep: kept, ContextWindow: j.play.Window, Seals: fakeupstream.Seal(*seal), IsSummary: judge.IsOwnCall}
	j.play.Sealed = *seal != ""
	if j.up.SealWhen, err = sealWhen(*seal, *steps); err != nil {
		return j, err
	}
	j.recorded, err = runs(fs)
	return j, err
}

// sealWhen returns which answers are sealed; nil means each.
func sealWhen(form, steps string) (func(n int) bool, error) {
	if form != "" && !slices.Contains(fakeupstream.Seals(), fakeupstream.Seal(form)) {
		return nil, fmt.Errorf("-sealed %s: want one of %v", form, fakeupstream.Seals())
	}
	switch steps {
	case "each":
		return nil, nil
	case "some":
		return func(n int) bool { return n%3 == 1 }, nil
	case "first":
		return func(n int) bool { return n == 0 }, nil
	}
	return nil, fmt.Errorf("-sealed-steps %s: want each, some or first", steps)
}

// expectations returns what the configuration guarantees.
func expectations(cfg *config.Config, model string, window int) judge.Expectations {
	c, e := cfg.Condenser, judge.Expectations{MayFail: window > 0} // the summariser's window may be too small, too
	for _, stage := range c.Stages() {
		e.Summarisers = append(e.Summarisers, cmp.Or(cfg.LLMs[stage.LLMConfig].Model, model))
		e.HiddenTools = e.HiddenTools || stage.AgentRequest || stage.Recall
		kind := stage.Entry()
		e.Moving, e.Plain = e.Moving || kind.Shapes, e.Plain || kind.Unrecorded
	}
	if window > 0 {
		e.Summarisers = append(e.Summarisers, model)
	}
	if c.Type == catalogue.TypeLLM && c.MinTokens == 0 && len(c.PerModel) == 0 {
		e.MaxSize, e.MaxTokens = c.MaxSize, int(c.MaxTokens)
	}
	return e
}

// judge plays one run, with its own proxy and fake upstream.
func (j *judged) judge(ctx context.Context, cfg *config.Config, run replay.Run) (judge.Report, error) {
	stage, err := judge.NewStage(*cfg, j.up, nil)
	if err != nil {
		return judge.Report{}, err
	}
	o := j.play
	o.URL, o.Upstream = func(int) string { return stage.URL() }, stage.Upstream
	report, err := judge.Play(ctx, run, o)
	if err == nil && cfg.Store.Content {
		if wrong := stage.CheckLog(ctx, report); wrong != nil {
			report.Violations = append(report.Violations, wrong)
		}
	}
	return report, errors.Join(err, stage.Close())
}
