package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/lab/bench"
)

// The hidden subcommands that are the proxies with which a benchmark compares.
const (
	bareProxy = "bare-proxy"
	relay     = "relay"
)

// measureBench measures what the proxy adds to a request, and writes the tables to out or into a document.
func measureBench(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	o := bench.Options{Log: func(line string) { fmt.Fprintln(os.Stderr, line) }}
	fs.BoolVar(&o.Quick, "quick", false, "a first look: fewer cells, fewer requests")
	only := fs.String("only", "", "parts to measure, of "+strings.Join(bench.Parts(), ","))
	fs.StringVar(&o.Cell, "cell", "", "measure only cells whose name holds this")
	fs.StringVar(&o.Dewpoint, "dewpoint", "bin/dewpoint", "the binary to measure")
	doc := fs.String("doc", "", "document to put the tables into")
	if err := fs.Parse(args); err != nil {
		return err
	}
	path, err := filepath.Abs(o.Dewpoint)
	if err != nil {
		return fmt.Errorf("find the binary: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	o.Dewpoint, o.Bare, o.Relay = path, []string{self, bareProxy}, []string{self, relay}
	if *only != "" {
		o.Parts = strings.Split(*only, ",")
	}
	for _, part := range o.Parts {
		if !slices.Contains(bench.Parts(), part) {
			return fmt.Errorf("no part %q; there are %s", part, strings.Join(bench.Parts(), ", "))
		}
	}
	result, err := bench.Run(ctx, o)
	if err != nil {
		return err
	}
	var tables bytes.Buffer
	result.Markdown(&tables)
	return publish(out, measured, *doc, tables.String())
}
