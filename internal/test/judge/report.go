package judge

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Add adds the numbers and violations of another report.
func (r *Report) Add(o Report) {
	r.Steps += o.Steps
	r.Messages += o.Messages
	r.Sent += o.Sent
	r.Forwarded += o.Forwarded
	r.Cached += o.Cached
	r.Own += o.Own
	r.OwnCalls += o.OwnCalls
	r.Condensed += o.Condensed
	r.Overflows += o.Overflows
	r.Violations = append(r.Violations, o.Violations...)
}

// Saved returns the percentage of the sent tokens that was saved: neither forwarded nor spent on the summariser. It may be negative.
func (r *Report) Saved() float64 {
	if r.Sent == 0 {
		return 0
	}
	return 100 * float64(r.Sent-r.Forwarded-r.Own) / float64(r.Sent)
}

// Table writes reports and their sum as a table. Tokens are in upstream's count.
func Table(w io.Writer, reports []Report) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "steps\tmessages\ttokens in\tforwarded\tof it cached\tcondensed\town calls\town tokens\toverflows\tsaved\t  run\t")
	total := Report{Name: fmt.Sprintf("%d runs", len(reports))}
	for _, r := range reports {
		row(tw, r)
		total.Add(r)
	}
	row(tw, total)
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

func row(w io.Writer, r Report) {
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f%%\t  %s\t\n", r.Steps, r.Messages, r.Sent, r.Forwarded, r.Cached,
		r.Condensed, r.OwnCalls, r.Own, r.Overflows, r.Saved(), r.Name)
}
