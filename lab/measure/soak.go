package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/lab/soak"
)

// measureSoak soaks the binary, and writes the tables to out or into a document. Violations are an error.
func measureSoak(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("soak", flag.ContinueOnError)
	o := soak.Options{Progress: os.Stderr}
	fs.StringVar(&o.Dewpoint, "dewpoint", "bin/dewpoint", "path of the binary")
	stores := fs.String("store", soak.Redis, "redis, embedded (one replica), or both, one after the other: redis,embedded")
	fs.DurationVar(&o.Duration, "duration", 5*time.Minute, "how long things go wrong")
	fs.IntVar(&o.Replicas, "replicas", 3, "replicas")
	fs.IntVar(&o.Sessions, "sessions", 300, "agents, each with one conversation")
	fs.IntVar(&o.Steps, "steps", 30, "turns of each agent, spread over the duration")
	fs.Uint64Var(&o.Seed, "seed", 1, "seed of what agents say and of when faults come")
	doc := fs.String("doc", "", "document to put the tables into")
	if err := fs.Parse(args); err != nil {
		return err
	}
	var tables bytes.Buffer
	violated := 0
	for store := range strings.SplitSeq(*stores, ",") {
		o.Store = store
		report, err := soak.Run(ctx, o)
		if err != nil {
			return err
		}
		for _, v := range report.Violations {
			fmt.Fprintln(os.Stderr, "VIOLATION:", v)
		}
		for _, split := range report.Splits {
			fmt.Fprintln(os.Stderr, "split:", split)
		}
		violated += report.Violated
		report.Markdown(&tables)
	}
	if err := publish(out, measured, *doc, tables.String()); err != nil {
		return err
	}
	if violated > 0 {
		return fmt.Errorf("%d violations; seed %d", violated, o.Seed)
	}
	return nil
}
