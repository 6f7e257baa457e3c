package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/terminal"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// replayRuns replays recorded runs through the proxy, offline, and prints what they would have used and cost without the proxy and with it.
func replayRuns(ctx context.Context, args []string, out, errs io.Writer) error {
	fs := flags("replay", errs)
	var choice replay.Choice
	file := fs.String("config", "", "configuration file with the condenser to use, and the llms and models that it needs")
	choice.Flags(fs)
	model := fs.String("model", replay.DefaultModel, "the model that requests ask for, with its window and prices")
	records := fs.Bool("records", false, "print each condensation with the record that it left")
	asJSON := fs.Bool("json", false, "print the results, records included, as JSON")
	if err := parse(fs, args, out); err != nil {
		return err
	}
	cfg, err := replayConfig(*file, choice)
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
	reports, err := playAll(ctx, cfg, paths, *model, errs)
	if err != nil {
		return err
	}
	results := replay.NewResults(cfg, *model, reports)
	if *asJSON {
		return results.WriteJSON(out)
	}
	if *records {
		if err := results.WriteRecords(out); err != nil {
			return err
		}
	}
	return results.WriteTable(out)
}

// replayConfig returns the part of a configuration that a replay uses.
func replayConfig(file string, choice replay.Choice) (*config.Config, error) {
	from, err := load(configSource{file: file}, nil)
	if err != nil {
		return nil, err
	}
	cfg, err := replay.Settings(from, choice)
	if err != nil {
		return nil, fmt.Errorf("dewpoint: %w", err)
	}
	if err := cfg.Validate(); err != nil {
		return nil, listed(err)
	}
	return cfg, nil
}

// playAll replays the runs in files, one after another. If errs is a terminal, it shows its progress there.
func playAll(ctx context.Context, cfg *config.Config, paths []string, model string, errs io.Writer) ([]replay.Report, error) {
	progress := terminal.NewProgress(terminal.Of(errs, os.Getenv), "replaying", len(paths))
	defer progress.End()
	options := replay.Options{Model: model, Encoders: tokenize.New()}
	reports := make([]replay.Report, len(paths))
	for i, path := range paths {
		run, err := replay.Load(path)
		if err != nil {
			return nil, err
		}
		if reports[i], err = replay.Play(ctx, cfg, run, options); err != nil {
			return nil, err
		}
		progress.Add(1)
	}
	return reports, nil
}
