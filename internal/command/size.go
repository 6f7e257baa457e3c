package command

import (
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/dewpoint-proxy/dewpoint/internal/capacity"
	"github.com/dewpoint-proxy/dewpoint/internal/figures"
)

// estimateSize prints what sessions take in Redis.
func estimateSize(args []string, out, errs io.Writer) error {
	fs := flags("size", errs)
	l := capacity.Load{}
	fs.IntVar(&l.Sessions, "sessions", 10_000, "sessions that begin in a day")
	fs.IntVar(&l.Messages, "messages", 150, "messages of a session")
	fs.IntVar(&l.Bytes, "bytes", 1500, "bytes of a message on average, as JSON")
	fs.IntVar(&l.Days, "days", 30, "days that a session is kept after its last message: store.ttl")
	fs.BoolVar(&l.Content, "content", true, "keep the messages: store.content")
	if err := parse(fs, args, out); err != nil {
		return err
	}
	if fs.NArg() > 0 || min(l.Sessions, l.Messages, l.Bytes, l.Days) < 1 {
		return usageError{errors.New("dewpoint: size takes flags only, with numbers of at least 1: see 'dewpoint size --help'")}
	}
	return writeSize(out, l, capacity.Redis(l))
}

func writeSize(out io.Writer, l capacity.Load, e capacity.Estimate) error {
	fmt.Fprintf(out, "%s sessions a day, each with %s messages of %s bytes, kept for %s:\n\n",
		figures.Grouped(l.Sessions), figures.Grouped(l.Messages), figures.Grouped(l.Bytes), days(l.Days))
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "in Redis\tmemory\tkeys\t")
	for _, p := range e.Parts {
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", p.Name, figures.Bytes(p.Bytes), figures.Grouped(int(p.Keys)))
	}
	fmt.Fprintf(w, "all\t%s\t%s\t\n", figures.Bytes(e.Bytes), figures.Grouped(int(e.Keys)))
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print sizes: %w", err)
	}
	_, err := fmt.Fprintf(out, "\nOn average %.1f requests and %s commands a second, of all nodes together. Peaks, replicas, append-only files and free\n"+
		"memory come on top: plan for twice the memory. docs/redis.md says how the figures were measured.\n", e.Requests, figures.Grouped(int(math.Ceil(e.Commands))))
	if err != nil {
		return fmt.Errorf("print sizes: %w", err)
	}
	return nil
}

func days(n int) string {
	if n == 1 {
		return "1 day"
	}
	return fmt.Sprintf("%d days", n)
}
