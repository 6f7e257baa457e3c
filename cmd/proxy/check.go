package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/app"
)

// checkConfig validates a configuration and prints the effective one, with secrets redacted.
func checkConfig(args []string, out, errs io.Writer) error {
	fs := flags("check-config", errs)
	probe := fs.Bool("probe", false, "call each configured model once")
	if err := parse(fs, args); err != nil {
		return err
	}
	if fs.NArg() != 1 {
		return usageError{fmt.Errorf("dewpoint: check-config takes one file")}
	}
	cfg, err := load(configSource{file: fs.Arg(0)}, app.Check)
	if err != nil {
		return usageError{err}
	}
	text, err := cfg.Effective()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n# %s: valid\n", text, fs.Arg(0))
	if *probe {
		return probeModels(cfg, out)
	}
	return nil
}

// probeModels calls each configured model once and prints the results.
func probeModels(cfg *config.Config, out io.Writer) error {
	failed := 0
	for _, p := range app.Probe(context.Background(), cfg) {
		fmt.Fprintf(out, "# llms.%s: %s\n", p.Name, p)
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
