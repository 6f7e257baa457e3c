package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
)

// Overview is the first page: what is wrong, what requests cost with and without Dewpoint, and what goes on now.
type Overview struct {
	Title    string
	Note     string // what the figures are
	Ranges   []Link
	Trouble  []Notice // what is degraded, and what to do
	Tiles    []Tile
	Remarks  []string // on the figures
	Days     []Days   // a chart, in the forms for wide and for narrow screens
	NoDays   string   // why there is no chart
	DayTable *Table   // the chart's figures
	Tables   []Table
	Recent   []SessionRow
	Empty    string // why there are no sessions
	Holdouts Holdouts
	Modes    []Mode
	CanMode  bool
}

func (Overview) template() string { return "overview" }

// Heading returns the title.
func (Overview) Heading() string { return "Overview" }

// Holdouts compare held-out sessions with condensed ones.
type Holdouts struct {
	Facts []Fact
	Empty string
}

// Mode is whether a tenant's histories are condensed.
type Mode struct {
	Tenant, Words, Until, URL string
	Changed                   bool
}

// Table is a table of figures. The first column is not a number.
type Table struct {
	Title   string
	Columns []string
	Rows    []TableRow
	More    string // what is left out
	Empty   string
}

// TableRow is a row of a table. The sign is that of its last figure.
type TableRow struct {
	Cells []string
	Sign  int // 1: a gain, -1: a loss
}

// OverviewReads are the totals that an overview shows.
type OverviewReads struct {
	Since, Until time.Time // the first and the last day
	Rows         []account.Row
}

// Account adds the figures of a number of days.
func (o *Overview) Account(in *OverviewReads) {
	since, until := in.Since.UTC().Format(time.DateOnly), in.Until.UTC().Format(time.DateOnly)
	by := func(dimension string) []account.Line {
		return account.NewReport(since, until, []string{dimension}, in.Rows).Rows
	}
	if len(in.Rows) == 0 {
		o.NoDays = "No request has been accounted for in these days. An account is written when an answer ends, and is kept for 400 days, longer than the sessions: choose more days above, or point an agent at the proxy."
		return
	}
	total := account.NewReport(since, until, nil, in.Rows).Total
	o.Tiles = append(o.Tiles, tilesOf(&total)...)
	o.Remarks = remarksOf(&total)
	daily := by("day")
	o.Days, o.NoDays = chartsOf(in.Since, in.Until, daily)
	o.DayTable = &Table{Title: "Day by day", Columns: columns("Day, UTC"), Rows: rowsOf(daily, func(l *account.Line) string { return l.Day })}
	o.Tables = append(
		o.Tables,
		tableOf("By tenant", "Tenant", by("tenant"), func(l *account.Line) string { return l.Tenant }),
		tableOf("By model", "Model", by("model"), func(l *account.Line) string { return l.Model }),
		tableOf("By client", "Client", byClient(since, until, in.Rows), clientOf),
	)
}

// ownCalls stands for the client of calls of the proxy's own. No client has a space in its name.
const ownCalls = "own calls"

// byClient returns the lines of each client.
func byClient(since, until string, rows []account.Row) []account.Line {
	rows = slices.Clone(rows)
	for i := range rows {
		if rows[i].Kind == account.Own && rows[i].Agent == "" {
			rows[i].Agent = ownCalls
		}
	}
	return account.NewReport(since, until, []string{"agent", "agent_version"}, rows).Rows
}

func clientOf(l *account.Line) string {
	if l.Agent == "" {
		return "not named in User-Agent"
	}
	return strings.TrimSpace(l.Agent + " " + l.Version)
}

// billed reports whether a line has anything that has a price.
func billed(l *account.Line) bool { return l.USD.Bill != 0 || l.USD.Without != 0 }

// tilesOf returns the figures of all requests.
func tilesOf(l *account.Line) (all []Tile) {
	if billed(l) {
		saved := Tile{Figure: signed(l.USD.Saved.USD()), Text: "saved, net of own calls and rewritten caches", Sign: sign(l.USD.Saved.USD())}
		if saved.Sign < 0 {
			saved.Text = "lost: condensing cost more than it saved"
		}
		all = append(all, saved, Tile{Figure: usd(l.USD.Bill.USD()), Text: "bill; " + usd(l.USD.Without.USD()) + " without Dewpoint"})
		if l.USD.Without > 0 {
			share := Tile{Figure: percent(int64(l.USD.Saved), int64(l.USD.Without)), Text: "of the bill without Dewpoint saved", Sign: saved.Sign}
			if saved.Sign < 0 {
				share.Figure, share.Text = percent(-int64(l.USD.Saved), int64(l.USD.Without)), "more than the bill without Dewpoint"
			}
			all = append(all, share)
		}
	}
	if l.Sent > 0 {
		all = append(all, Tile{Figure: tokens(int(l.Sent - l.Forwarded)), Text: "tokens not sent, of " + tokens(int(l.Sent)) + "; " + tokens(int(l.Forwarded)) + " sent"})
	}
	if p := &l.Plan; p.Requests > 0 {
		all = append(all, Tile{
			Figure: tokens(int(p.Sent - p.Forwarded)),
			Text:   "tokens not sent on subscriptions, of " + tokens(int(p.Sent)) + " (" + percent(p.Sent-p.Forwarded, p.Sent) + "); they have no bill",
		})
	}
	if l.Spared != 0 {
		all = append(all, Tile{Figure: signed(l.Spared.USD()), Text: "would be saved where condensing is only observed", Sign: sign(l.Spared.USD())})
	}
	return all
}

// remarksOf says what the figures leave out.
func remarksOf(l *account.Line) (all []string) {
	if n := l.Unpriced + l.Own.Unpriced; n > 0 {
		all = append(all, plural(int(n), "request")+" went to models without a known price, and are counted in tokens only. Set models.NAME.price to have their bill.")
	}
	if l.Reckoned > 0 {
		all = append(all, "Upstream did not report what it charged for "+plural(int(l.Reckoned), "request")+". Dewpoint's own counts are used for them.")
	}
	return all
}

func columns(first string) []string {
	return []string{first, "Requests", "Tokens sent", "Not sent", "Own calls", "Bill", "Without", "Saved"}
}

// tableRows is how many rows a table shows.
const tableRows = 15

// tableOf returns the lines with the largest bills as a table.
func tableOf(title, column string, lines []account.Line, name func(*account.Line) string) Table {
	slices.SortStableFunc(lines, func(a, b account.Line) int {
		return cmp.Or(cmp.Compare(b.USD.Without, a.USD.Without), cmp.Compare(b.Sent+b.Plan.Sent, a.Sent+a.Plan.Sent))
	})
	t := Table{Title: title, Columns: columns(column)}
	if more := len(lines) - tableRows; more > 0 {
		lines = lines[:tableRows]
		t.More = count(more) + " more with smaller bills are in the CSV."
	}
	t.Rows = rowsOf(lines, name)
	return t
}

const none = "–"

func rowsOf(lines []account.Line, name func(*account.Line) string) (rows []TableRow) {
	for i := range lines {
		l := &lines[i]
		requests, sent, forwarded := l.Requests+l.Plan.Requests, l.Sent+l.Plan.Sent, l.Forwarded+l.Plan.Forwarded
		r := TableRow{Cells: []string{name(l), none, none, none, none, none, none, none}}
		if requests > 0 {
			r.Cells[1], r.Cells[2], r.Cells[3] = count(int(requests)), tokens(int(forwarded)), tokens(int(sent-forwarded))
		}
		if l.Own.Calls > 0 {
			r.Cells[4] = usd(l.Own.Charged.USD())
		}
		switch {
		case billed(l):
			r.Cells[5], r.Cells[6], r.Cells[7], r.Sign = usd(l.USD.Bill.USD()), usd(l.USD.Without.USD()), signed(l.USD.Saved.USD()), sign(l.USD.Saved.USD())
		case l.Unpriced > 0:
			r.Cells[5] = "no price"
		case l.Plan.Requests > 0:
			r.Cells[5] = "subscription"
		}
		if sent > 0 {
			r.Cells[3] += " (" + percent(sent-forwarded, sent) + ")"
		}
		rows = append(rows, r)
	}
	return rows
}

// percent writes a share of a whole.
func percent(part, whole int64) string {
	if whole == 0 {
		return none
	}
	share := 100 * float64(part) / float64(whole)
	if -1 < share && share < 1 && part != 0 {
		return fmt.Sprintf("%.1f%%", share)
	}
	return fmt.Sprintf("%.0f%%", share)
}
