package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/app"
)

// checkConfig loads a configuration and prints the effective one, secrets redacted.
func checkConfig(args []string, out, errs io.Writer) error {
	fs := flags("check-config", errs)
	probe := fs.Bool("probe", false, "ask each configured model once")
	if err := parse(fs, args); err != nil {
		return err
	}
	if fs.NArg() != 1 {
		return usageError{fmt.Errorf("dewpoint: check-config takes one file")}
	}
	cfg, err := load(fs.Arg(0), nil)
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

// probeModels asks each configured model once, and says what came of it.
func probeModels(cfg *config.Config, out io.Writer) error {
	failed := 0
	for _, p := range app.Probe(context.Background(), cfg) {
		fmt.Fprintf(out, "# llms.%s: %s\n", p.Name, p)
		if p.Err != nil {
			failed++
		}
	}
	if failed > 0 {
		return usageError{fmt.Errorf("dewpoint: %d of the configured models do not answer", failed)}
	}
	return nil
}

// errDamaged: the command has said what is damaged.
var errDamaged = errors.New("the store is damaged: with --renew it is set aside, and the next start begins a new one")

// checkStore says what is damaged in an embedded store's file and, if it is told to, sets a damaged one aside.
func checkStore(args []string, out, errs io.Writer) error {
	fs := flags("check-store", errs)
	renew := fs.Bool("renew", false, "rename a damaged file, so that the next start begins a new one")
	if err := parse(fs, args); err != nil {
		return err
	}
	if fs.NArg() != 1 {
		return usageError{fmt.Errorf("dewpoint: check-store takes one file, that of store.path")}
	}
	whole, err := app.CheckStore(fs.Arg(0), *renew, out)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return usageError{err}
	case err != nil || whole || *renew:
		return err
	}
	return errDamaged
}

// version and revision are set when a release or an image is built. Elsewhere the revision is what Go noted of the checkout.
var (
	version  = "dev"
	revision = ""
)

// commit is the revision that the program was built of; empty where it is not known.
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
