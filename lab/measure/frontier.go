package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/dewpoint-proxy/dewpoint/lab/frontier"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// measureFrontier reckons what rules save and what is missing under them, at one price and at several, and writes the tables to out or into a
// document.
func measureFrontier(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("frontier", flag.ContinueOnError)
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
		return fmt.Errorf("measure the frontier: %w", err)
	}
	read := make([]*frontier.Run, len(recorded))
	for i := range recorded {
		if read[i], err = frontier.NewRun(recorded[i], fixedTokens, counter); err != nil {
			return fmt.Errorf("measure the frontier: %w", err)
		}
	}
	tariffs := frontier.Tariffs()
	var tables bytes.Buffer
	if err := frontier.Write(ctx, &tables, read, frontier.Rules(tariffs[0].Prices), tariffs[0].Prices); err != nil {
		return fmt.Errorf("measure the frontier: %w", err)
	}
	tables.WriteString("\n`excerpts`, by price, at other prices:\n\n")
	if err := frontier.WriteTariffs(ctx, &tables, read, tariffs); err != nil {
		return fmt.Errorf("measure the frontier: %w", err)
	}
	return publish(out, measured, *doc, tables.String())
}
