package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/replay/ask"
	"github.com/dewpoint-proxy/dewpoint/internal/replay/logs"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/terminal"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// defaultConfig stands for the configuration without a file.
const defaultConfig = "default"

// replayOptions are the flags of replay.
type replayOptions struct {
	choice          replay.Choice
	configs         []string
	model           string
	records, losers bool
	asJSON, asCSV   bool

	ask ask.Asker
	key string // names the environment variable with the key for ask
}

// parse reads the flags, and returns the arguments.
func (o *replayOptions) parse(args []string, out, errs io.Writer) ([]string, error) {
	fs := flags("replay", errs)
	fs.Func("config", "configuration to replay under: a file, or 'default'; give it again to compare several", func(file string) error {
		o.configs = append(o.configs, file)
		return nil
	})
	o.choice.Flags(fs)
	fs.StringVar(&o.model, "model", "", "the model of all requests, with its window and prices (default: the recorded one, or else "+replay.DefaultModel+")")
	fs.BoolVar(&o.losers, "losers", false, "list the sessions that would have cost more")
	fs.BoolVar(&o.records, "records", false, "print each condensation with the record that it left")
	fs.BoolVar(&o.asJSON, "json", false, "print JSON: a report for each session and configuration")
	fs.BoolVar(&o.asCSV, "csv", false, "print CSV: a line for each session and configuration")
	fs.StringVar(&o.ask.Model.Name, "ask", "", "ask this model for the next action, with the whole history and with what is shown of it; sends your sessions to its server")
	fs.StringVar(&o.ask.Model.BaseURL, "ask-url", cmp.Or(os.Getenv("OPENAI_BASE_URL"), "https://api.openai.com/v1"), "its server, which speaks Chat Completions, with the /v1")
	fs.StringVar(&o.key, "ask-key", "OPENAI_API_KEY", "the environment variable with the key for it")
	fs.IntVar(&o.ask.Every, "ask-every", 5, "ask about each nth step that is condensed")
	fs.IntVar(&o.ask.Most, "ask-most", 100, "ask about at most so many steps for each configuration; 0: no limit")
	if err := parse(fs, args, out); err != nil {
		return nil, err
	}
	if err := o.checkAsk(); err != nil {
		return nil, usageError{err}
	}
	if o.asJSON && o.asCSV {
		return nil, usageError{errors.New("dewpoint: choose --json or --csv")}
	}
	if len(o.configs) == 0 {
		o.configs = []string{defaultConfig}
	}
	return fs.Args(), nil
}

// checkAsk checks the flags for asking a model, and reads its key.
func (o *replayOptions) checkAsk() error {
	switch a := &o.ask; {
	case a.Model.Name == "":
		return nil
	case o.asJSON || o.asCSV:
		return errors.New("dewpoint: --ask prints a table: leave out --json and --csv")
	case a.Every < 1 || a.Most < 0:
		return errors.New("dewpoint: --ask-every must be at least 1, and --ask-most at least 0")
	}
	o.ask.Model.Key = os.Getenv(o.key)
	return nil
}

// replayRuns replays recorded sessions through the proxy, offline, and prints what they would have used and cost without the proxy and with it.
// What cannot be read or replayed is left out, and named.
func replayRuns(ctx context.Context, args []string, out, errs io.Writer) error {
	var o replayOptions
	args, err := o.parse(args, out, errs)
	if err != nil {
		return err
	}
	settings, err := replaySettings(o.configs, o.choice)
	if err != nil {
		return usageError{err}
	}
	files, err := logs.Find(args)
	if err == nil && len(args) == 0 {
		err = errors.New("replay takes files or folders of recorded sessions, such as ~/.claude/projects or ~/.codex/sessions")
	}
	if err != nil {
		return usageError{fmt.Errorf("dewpoint: %w", err)}
	}
	results, failed := playAll(ctx, settings, files, &o, errs)
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, s := range results.Skipped {
		fmt.Fprintln(errs, terminal.Clean(fmt.Sprintf("left out: %s: %s", s.Name, s.Reason)))
	}
	if len(results.Runs) == 0 {
		return errors.New("there is nothing to replay: docs/replay.md says which files can be read")
	}
	if err := writeResults(&results, &o, out); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of what was left out could not be read or replayed", failed)
	}
	return nil
}

// widest is the length of lines where there is no terminal, or a wider one.
const widest = 110

func writeResults(results *replay.Results, o *replayOptions, out io.Writer) error {
	switch {
	case o.asJSON:
		return results.WriteJSON(out)
	case o.asCSV:
		return results.WriteCSV(out)
	}
	if o.records {
		if err := results.WriteRecords(out); err != nil {
			return err
		}
	}
	if o.losers {
		if err := results.WriteLosers(out); err != nil {
			return err
		}
	}
	columns := terminal.Of(out, os.Getenv).Columns()
	if err := results.WriteTable(out, cmp.Or(min(columns, widest), widest)); err != nil || o.ask.Model.Name == "" {
		return err
	}
	var names []string
	for _, s := range results.Settings {
		names = append(names, s.Name)
	}
	return o.ask.Write(names, out)
}

// replaySettings reads the configurations.
func replaySettings(files []string, choice replay.Choice) (settings []replay.Setting, err error) {
	for _, file := range files {
		cfg, err := replayConfig(file, choice)
		if err != nil {
			return nil, err
		}
		settings = append(settings, replay.Setting{Name: filepath.Base(file), Config: cfg})
	}
	return settings, nil
}

// replayConfig returns the part of a configuration that a replay uses.
func replayConfig(file string, choice replay.Choice) (*config.Config, error) {
	if file == defaultConfig {
		file = ""
	}
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

// playAll reads the files one after another, while their sessions are replayed. failed counts what could not be read or replayed, except for
// files that hold no sessions. If errs is a terminal, it shows the progress there.
func playAll(ctx context.Context, settings []replay.Setting, files []logs.File, o *replayOptions, errs io.Writer) (results replay.Results, failed int) {
	progress := terminal.NewProgress(terminal.Of(errs, os.Getenv), "replaying files", len(files))
	defer progress.End()
	options := replay.Options{Model: o.model, Encoders: tokenize.New()}
	if o.ask.Model.Name != "" {
		options.Look = o.ask.Look
	}
	batch := replay.NewBatch(ctx, settings, options, o.records)
	reader := logs.NewReader()
	for _, file := range files {
		broken, err := reader.Read(file.Path, file.Name, func(run replay.Run) error { return batch.Play(ctx, run) })
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			_, unknown := errors.AsType[logs.Unknown](err)
			batch.Skip(file.Name, err.Error(), !unknown)
		} else if broken > 0 {
			batch.Skip(file.Name, fmt.Sprintf("%d of its lines are not valid JSON", broken), true)
		}
		progress.Add(1)
	}
	return batch.End()
}
