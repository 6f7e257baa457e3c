package main

import (
	"bytes"
	"context"
	"flag"
	"io"

	"github.com/dewpoint-proxy/dewpoint/lab/retention"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// measureSaved reckons what condensers save and what they keep, by length of the run, and writes the table to out or into a document.
func measureSaved(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("saved", flag.ContinueOnError)
	doc := fs.String("doc", "", "document to put the table into")
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
	saved, err := retention.MeasureSaved(ctx, recorded, counter)
	if err != nil {
		return err
	}
	var table bytes.Buffer
	saved.Markdown(&table)
	return publishAs(out, "saved", *doc, table.String())
}
