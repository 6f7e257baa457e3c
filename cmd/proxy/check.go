package main

import (
	"fmt"
	"io"
	"runtime/debug"
)

// checkConfig loads a configuration and prints the effective one, secrets redacted.
func checkConfig(args []string, out, errs io.Writer) error {
	fs := flags("check-config", errs)
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
	return nil
}

// version is set when a release is built.
var version = "dev"

func versionText() string {
	text := "dewpoint " + version
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return text
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			text += " (" + s.Value[:12] + ")"
		}
	}
	return text + " " + info.GoVersion
}
