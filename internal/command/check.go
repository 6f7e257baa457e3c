package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/app"
)

// checkConfig validates a configuration. It prints one line if that is valid, and its warnings below.
func checkConfig(args []string, out, errs io.Writer) error {
	fs := flags("check-config", errs)
	effective := fs.Bool("print", false, "print the effective configuration, with all defaults and without secrets")
	probe := fs.Bool("probe", false, "call each model of llms as the condensers that name it call it")
	if err := parse(fs, args, out); err != nil {
		return err
	}
	if fs.NArg() != 1 {
		return usageError{fmt.Errorf("dewpoint: check-config takes one file")}
	}
	cfg, err := load(configSource{file: fs.Arg(0)}, app.Check)
	if err != nil {
		return usageError{err}
	}
	if *effective {
		text, err := cfg.Effective()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", text)
		out = &comments{out} // so that all of the output is YAML
	}
	fmt.Fprintln(out, verdict(fs.Arg(0), cfg.Warnings))
	if err := printBegins(cfg, out); err != nil {
		return err
	}
	if *probe {
		return probeModels(cfg, out)
	}
	return nil
}

// exampleModel is described if a configuration names no model.
const exampleModel = "gpt-5.5"

// printBegins says when the models that the configuration names are condensed, for the default condenser and for those of tenants.
func printBegins(cfg *config.Config, out io.Writer) error {
	models := slices.Sorted(maps.Keys(cfg.Models))
	if len(models) == 0 {
		models = []string{exampleModel}
	}
	err := printBegin(cfg, out, "condenser", cfg.Condenser, models)
	for _, t := range cfg.Tenants {
		if t.Condenser != nil {
			err = errors.Join(err, printBegin(cfg, out, "tenant "+t.Name, *t.Condenser, models))
		}
	}
	return err
}

func printBegin(cfg *config.Config, out io.Writer, of string, c config.Condenser, models []string) error {
	begins, err := app.Begins(cfg, c, models)
	for _, b := range begins {
		fmt.Fprintf(out, "  %s: %s\n", of, b)
		if cramped := b.Cramped(); cramped != "" && rolling(c) {
			fmt.Fprintf(out, "  %s: warning: %s\n", of, cramped)
		}
	}
	return err
}

// rolling reports whether a condenser or one of its stages condenses by limits.
func rolling(c config.Condenser) bool {
	return slices.ContainsFunc(c.Stages(), func(stage config.Condenser) bool { return stage.Entry().Rolling() })
}

// comments makes a comment of YAML of each line. It expects whole lines.
type comments struct{ out io.Writer }

func (c *comments) Write(lines []byte) (int, error) {
	text := strings.TrimSuffix(string(lines), "\n")
	if _, err := fmt.Fprintf(c.out, "# %s\n", strings.ReplaceAll(text, "\n", "\n# ")); err != nil {
		return 0, err
	}
	return len(lines), nil
}

// verdict says that a file is valid and lists the warnings about it, one per line.
func verdict(file string, warnings config.Problems) string {
	switch len(warnings) {
	case 0:
		return file + ": valid"
	case 1:
		return file + ": valid, with 1 warning\n  " + warnings.Error()
	}
	return fmt.Sprintf("%s: valid, with %d warnings\n  %s", file, len(warnings), strings.ReplaceAll(warnings.Error(), "\n", "\n  "))
}

// probeModels calls each configured model once and prints the results.
func probeModels(cfg *config.Config, out io.Writer) error {
	failed := 0
	for _, p := range app.Probe(context.Background(), cfg) {
		fmt.Fprintf(out, "llms.%s: %s\n", p.Name, p)
		if p.Err != nil {
			failed++
		}
	}
	if failed > 0 {
		return usageError{fmt.Errorf("dewpoint: configured models that do not answer: %d", failed)}
	}
	return nil
}

// version and revision are set by the linker in releases and images. Other builds use the revision that Go recorded.
var (
	version  = "dev"
	revision = ""
)

// commit returns the revision that the program was built from, or "" if it is not known.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || revision != "" {
		return revision
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

func versionText() string {
	text := "dewpoint " + version
	if rev := commit(); len(rev) >= 12 {
		text += " (" + rev[:12] + ")"
	}
	return text + " " + runtime.Version()
}
