package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/dewpoint-proxy/dewpoint/condense/ground"
	"github.com/dewpoint-proxy/dewpoint/lab/grounding"
)

// measureGrounding checks the reports in recorded runs, and writes the table to out or into a document. With -lines it writes the lines that
// are struck out as well.
func measureGrounding(_ context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("grounding", flag.ContinueOnError)
	doc := fs.String("doc", "", "document to put the table into")
	lines := fs.Bool("lines", false, "write each line that is struck out")
	if err := fs.Parse(args); err != nil {
		return err
	}
	recorded, err := runs(fs)
	if err != nil {
		return err
	}
	var all []grounding.Report
	for _, r := range recorded {
		reports, err := grounding.Reports(r)
		if err != nil {
			return err
		}
		all = append(all, reports...)
	}
	var table bytes.Buffer
	grounding.Measure(all, func(run string, s ground.Struck) {
		if *lines {
			_, _ = fmt.Fprintf(out, "%s: %q names %q\n", run, s.Line, s.Missing)
		}
	}).Markdown(&table)
	return publish(out, measured, *doc, table.String())
}
