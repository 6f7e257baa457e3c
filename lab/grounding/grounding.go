// Package grounding measures how many lines of real reports are struck out as not grounded, and how many of reports about something else.
package grounding

import (
	"fmt"
	"io"

	"github.com/dewpoint-proxy/dewpoint/condense/ground"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// minReport is the length in bytes from which an answer without calls is a report.
const minReport = 400

// Report is an answer in which an agent tells a person what it has done and found: the nearest that recorded runs have to a model's summary.
type Report struct {
	Run   string
	Text  string
	Shown []string // texts and calls of the messages before it
}

// Reports returns the reports of a run, oldest first.
func Reports(run replay.Run) (reports []Report, err error) {
	d := chat.New(chat.Options{})
	calls := run.Calls()
	for i, c := range calls {
		answer, err := d.Read(c.Answer)
		if err != nil {
			return nil, fmt.Errorf("read run %s: %w", run.Name, err)
		}
		if len(answer.Text) < minReport || len(answer.Calls) > 0 && i < len(calls)-1 {
			continue
		}
		r := Report{Run: run.Name, Text: answer.Text}
		for _, m := range c.Messages {
			content, err := d.Read(m)
			if err != nil {
				return nil, fmt.Errorf("read run %s: %w", run.Name, err)
			}
			r.Shown = append(r.Shown, content.Text)
			for _, call := range content.Calls {
				r.Shown = append(r.Shown, call.Name, call.Arguments)
			}
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// Figures counts reports and their lines.
type Figures struct {
	Reports  int // with at least one line that names something
	Refused  int // too few of their lines are grounded
	Lines    int // that name something
	Grounded int
}

func (f *Figures) add(r ground.Result) {
	if r.Lines == 0 {
		return
	}
	f.Reports++
	f.Lines += r.Lines
	f.Grounded += r.Grounded
	if !r.Enough() {
		f.Refused++
	}
}

// Result has the figures of reports that are checked against what their own writers were shown, and of the same reports checked against
// what was shown to the writer of a report in another run.
type Result struct{ Own, Other Figures }

// step is the distance between a report and the other one, in reports.
const step = 37

// Measure checks all reports. struck receives each line that is struck out of a report in its own run, and what it names in vain.
func Measure(reports []Report, struck func(run string, s ground.Struck)) (out Result) {
	for i, r := range reports {
		own := ground.Check(r.Text, r.Shown...)
		out.Own.add(own)
		for _, s := range own.Struck {
			struck(r.Run, s)
		}
		for n := 1; n < len(reports); n++ {
			if o := reports[(i+n*step)%len(reports)]; o.Run != r.Run {
				out.Other.add(ground.Check(r.Text, o.Shown...))
				break
			}
		}
	}
	return out
}

// Markdown writes the figures as a table.
func (r Result) Markdown(w io.Writer) {
	fmt.Fprint(w, "| checked against what was shown | reports | lines that name something | struck out | reports refused |\n|---|---|---|---|---|\n")
	for _, row := range []struct {
		name string
		Figures
	}{{"in their own run", r.Own}, {"in another run", r.Other}} {
		fmt.Fprintf(w, "| %s | %d | %d | %d (%.1f%%) | %d (%.1f%%) |\n", row.name, row.Reports, row.Lines, row.Lines-row.Grounded,
			share(row.Lines-row.Grounded, row.Lines), row.Refused, share(row.Refused, row.Reports))
	}
}

// share returns a percentage, 0 of nothing.
func share(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }
