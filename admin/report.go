package admin

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/holdout"
)

// reportBody is the report of all tenants, what is spent of their budgets, and how their holdouts stand.
type reportBody struct {
	account.Report
	Budgets  []budgetBody     `json:"budgets"`
	Holdouts []holdout.Report `json:"holdouts"`
}

// defaultSince is how far a report goes back by default.
const defaultSince = "30d"

// report says what requests cost, with and without Dewpoint, of the tenants that the token opens.
func (a *api) report(r *http.Request, q *query) (any, error) {
	now := time.Now()
	since, until, by := q.since("since", defaultSince, now), q.since("until", "0d", now), q.dimensions("by")
	format := q.values["format"]
	if format != "" && format != "json" && format != "csv" {
		q.refuse("format", "Give json or csv.")
	}
	if q.err != nil {
		return nil, q.err
	}
	rows, err := a.rowsOf(r, since, until)
	if err != nil {
		return nil, err
	}
	out := reportBody{account.NewReport(day(since), day(until), by, rows), []budgetBody{}, nil}
	if format == "csv" {
		var text bytes.Buffer
		if err := out.WriteCSV(&text); err != nil {
			return nil, err
		}
		return otherBody{"text/csv; charset=utf-8", text.Bytes()}, nil
	}
	list, err := a.budgetsOf(r)
	if err != nil {
		return nil, err
	}
	out.Budgets = list.Budgets
	out.Holdouts, err = a.holdoutsOf(r)
	return out, err
}

// rowsOf reads the totals of the tenants that the request may see.
func (a *api) rowsOf(r *http.Request, since, until time.Time) ([]account.Row, error) {
	rows, err := a.o.Journal.Rows(r.Context(), since, until)
	if err != nil {
		return nil, fmt.Errorf("read totals: %w", err)
	}
	return slices.DeleteFunc(rows, func(row account.Row) bool { return !who(r).sees(row.Tenant) }), nil
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// since reads a time: a day, such as 2026-11-30, a time in RFC 3339 format, or how long ago it was, such as 7d or 12h.
func (q *query) since(name, fallback string, now time.Time) time.Time {
	text, given := q.values[name]
	if !given {
		text = fallback
	}
	t, err := account.ParseTime(text, now)
	if err != nil {
		q.refuse(name, "Give a day such as 2006-01-02, a time in RFC 3339 format, or how long ago it was, such as 7d or 12h.")
	}
	return t
}

// dimensions reads what a report is grouped by.
func (q *query) dimensions(name string) []string {
	by := []string{}
	for part := range strings.SplitSeq(q.values[name], ",") {
		switch known := account.Dimensions(); {
		case part == "":
		case !slices.Contains(known, part):
			q.refuse(name, "Give any of %s, separated by commas.", strings.Join(known, ", "))
		case !slices.Contains(by, part):
			by = append(by, part)
		}
	}
	return by
}
