package main

import (
	"bytes"
	"context"
	"flag"
	"io"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/lab/retention"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// Recorded conversations with customers are short: they are measured from fewer tokens on, and at a budget that leaves something.
const (
	talkShare   = 0.4
	talkMinimum = 3000
)

// measureRetention measures all strategies, and writes the tables to out or into a document.
func measureRetention(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("retention", flag.ContinueOnError)
	moments := fs.Int("moments", 24, "actions of a run that are measured, at most")
	minimum := fs.Int("minimum", 20000, "tokens of the shortest history that is measured")
	return measureKept(fs, args, func(recorded []replay.Run, counter retention.Counter, doc string) error {
		result, err := retention.Measure(ctx, recorded, retention.Strategies(), retention.Options{
			Shares: retention.Shares(), Moments: *moments, Minimum: *minimum, Counter: counter,
		})
		if err != nil {
			return err
		}
		short, err := retention.Measure(ctx, recorded, retention.AgentStrategies(), retention.Options{
			Shares: []float64{talkShare}, Moments: *moments, Minimum: talkMinimum, Counter: counter,
		})
		if err != nil {
			return err
		}
		lived, err := retention.MeasureLived(ctx, recorded, counter)
		if err != nil {
			return err
		}
		var tables bytes.Buffer
		result.Markdown(&tables)
		short.ByAgent(&tables, 0)
		lived.Markdown(&tables)
		return publish(out, measured, doc, tables.String())
	})
}

// statements is the name of the table of what agents said.
const statements = "statements"

// measureStatements measures which statements of the agent stay that its later ones rely on.
func measureStatements(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet(statements, flag.ContinueOnError)
	moments := fs.Int("moments", 100, "actions of a run that are measured, at most")
	minimum := fs.Int("minimum", 20000, "tokens of the shortest history that is measured")
	return measureKept(fs, args, func(recorded []replay.Run, counter retention.Counter, doc string) error {
		result, err := retention.Measure(ctx, recorded, retention.SaidStrategies(), retention.Options{
			Shares: retention.Shares(), Moments: *moments, Minimum: *minimum, Counter: counter, Statements: true,
		})
		if err != nil {
			return err
		}
		var table bytes.Buffer
		result.Said(&table)
		return publish(out, statements, doc, table.String())
	})
}

// measureKept reads the recorded runs that a command line names, for a measurement of what is kept of them.
func measureKept(fs *flag.FlagSet, args []string, measure func(recorded []replay.Run, counter retention.Counter, doc string) error) error {
	doc := fs.String("doc", "", "document to put the tables into")
	if err := fs.Parse(args); err != nil {
		return err
	}
	recorded, err := runs(fs)
	if err != nil {
		return err
	}
	counter, err := tokenize.New().Encoder(tokenize.O200k)
	if err != nil {
		return err
	}
	return measure(recorded, counter, *doc)
}
