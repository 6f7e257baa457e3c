package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/app"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/platform"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/terminal"
	"github.com/dewpoint-proxy/dewpoint/internal/setup"
)

// initConfig writes a configuration from what it finds on this machine and what its user answers. It shows the configuration before.
func initConfig(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) error {
	fs := flags("init", errs)
	yes := fs.Bool("yes", false, "ask nothing: write the defaults, unless the file exists")
	file := fs.String("file", "", "the file to write (default dewpoint/config.yaml in the user's configuration folder)")
	if err := parse(fs, args, out); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return usageError{errors.New("dewpoint: init takes no arguments; name the file with --file")}
	}
	path := *file
	if path == "" {
		var err error
		if path, err = defaultPath(os.Getenv); err != nil {
			return usageError{fmt.Errorf("dewpoint: %w: name a file with --file", err)}
		}
	}
	if !*yes && !(terminal.Of(out, os.Getenv).IsTerminal() && isTerminal(in)) {
		return usageError{errors.New("dewpoint: init asks questions, and this is no terminal: run it with --yes to write the defaults")}
	}
	if *yes {
		return initDefaults(path, out)
	}
	return initAsking(ctx, path, setup.NewDialogue(in, out), out)
}

// isTerminal reports whether a person types the input.
func isTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && terminal.Of(file, os.Getenv).IsTerminal()
}

// initDefaults writes what is best without an answer. It never replaces a file.
func initDefaults(path string, out io.Writer) error {
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("%s exists: remove it, or name another file with --file; without --yes, init asks whether to replace it", path)
	}
	text := setup.Defaults().File()
	fmt.Fprintln(out, text)
	return writeConfig(path, text, out)
}

// initAsking writes what its user answers.
func initAsking(ctx context.Context, path string, d *setup.Dialogue, out io.Writer) error {
	fmt.Fprintln(out, "This writes a configuration for Dewpoint. An empty line takes what is in brackets.")
	fmt.Fprintln(out)
	found := setup.Found{Keys: setup.Keys(os.Getenv), Servers: setup.Servers(ctx, setup.Usual()), State: defaultState()}
	answers, err := d.Ask(found)
	if err != nil {
		return err
	}
	text := answers.File()
	fmt.Fprintf(out, "\n%s\n", text)
	question, empty := fmt.Sprintf("Write this to %s?", path), true
	if _, err := os.Stat(path); err == nil {
		question, empty = fmt.Sprintf("%s exists. Replace it with this?", path), false
	}
	switch agreed, err := d.Confirm(question, empty); {
	case err != nil:
		return err
	case !agreed:
		fmt.Fprintln(out, "Nothing was written.")
		return nil
	}
	return writeConfig(path, text, out)
}

// defaultState returns the file in which sessions are kept if none is named.
func defaultState() string {
	folder, err := platform.StateFolder("dewpoint", os.Getenv)
	if err != nil {
		return ""
	}
	return filepath.Join(folder, "state.db")
}

// writeConfig checks a configuration as a start would, and writes it.
func writeConfig(path, text string, out io.Writer) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	draft, err := os.CreateTemp(folder, "init-*.yaml")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(draft.Name()) //nolint:errcheck // it is there only if something went wrong
	_, err = io.WriteString(draft, text)
	if err := errors.Join(err, draft.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if _, err := load(configSource{file: draft.Name()}, app.Check); err != nil {
		return usageError{fmt.Errorf("dewpoint: nothing was written, because Dewpoint would not start with it: %w", err)}
	}
	if err := os.Rename(draft.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	start := "dewpoint"
	if byDefault, err := defaultPath(os.Getenv); err != nil || byDefault != path {
		start += " --config " + path
	}
	fmt.Fprintf(out, "Wrote %s. Start it with '%s', and check it with 'dewpoint doctor'.\n", path, start)
	return nil
}
