package ui_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/admin/ui"
	"github.com/dewpoint-proxy/dewpoint/internal/account"
)

const dollar = account.Pico(1e12)

// accounts returns the totals of a number of days for a number of clients. Each fifth day is a loss, and the third before the last has no requests.
func accounts(days, clients int) (rows []account.Row) {
	for d := range days {
		if d == days-3 {
			continue
		}
		on := day.AddDate(0, 0, d+1-days).Format(time.DateOnly)
		for c := range clients {
			n := int64(d*7%11+1) * int64(c+1)
			s := account.Sums{Requests: 40 * n, Steps: 38 * n, Sent: 900_000 * n, Forwarded: 520_000 * n, Charged: dollar * account.Pico(n), NotSent: dollar * account.Pico(n) * 9 / 10, Rewritten: -dollar * account.Pico(n) / 5}
			if d%5 == 4 {
				s.Rewritten = -dollar * account.Pico(n) * 6 / 5
			}
			key := account.Key{Day: on, Tenant: []string{"payments", "search"}[c%2], Model: []string{"gpt-5.5", "claude-opus-4-8"}[c%2], Client: account.Client{Agent: "codex_cli_rs", Version: fmt.Sprintf("0.%d", c)}}
			rows = append(rows, account.Row{Key: key, Sums: s})
		}
		own := account.Key{Day: on, Tenant: "search", Model: "gpt-5-mini", Kind: account.Own}
		plan := account.Key{Day: on, Tenant: "search", Model: "claude-opus-4-8", Client: account.Client{Agent: "claude-cli", Version: "2.1.104"}, Kind: account.Plan}
		local := account.Key{Day: on, Tenant: "payments", Model: "other"}
		rows = append(
			rows,
			account.Row{Key: own, Sums: account.Sums{Requests: 4, Input: 40_000, Output: 900, Charged: dollar / 50}},
			account.Row{Key: plan, Sums: account.Sums{Requests: 30, Steps: 30, Sent: 2_000_000, Forwarded: 1_400_000, Charged: 3 * dollar, NotSent: dollar}},
			account.Row{Key: local, Sums: account.Sums{Requests: 5, Sent: 80_000, Forwarded: 60_000, Unpriced: 5, UnpricedSent: 80_000, UnpricedForwarded: 60_000, Reckoned: 2}},
		)
	}
	return rows
}

func overviewPage(days, clients int) ui.Overview {
	o := ui.Overview{
		Title: "The last 14 days", Note: "All tenants, days in UTC", Ranges: []ui.Link{{Text: "7 days", URL: "/?days=7"}, {Text: "14 days"}},
		Trouble:  []ui.Notice{{Title: "A summariser fails", Text: "Cooling down: gpt-5-mini at https://api.openai.com/v1: denied.", Hint: "Check its key, its limits and its server."}},
		Holdouts: ui.Holdouts{Facts: []ui.Fact{{Name: "payments", Text: "5% of sessions are held out. Verdict: not known yet."}}},
		Empty:    "There are no sessions.", Modes: []ui.Mode{{Tenant: "payments", Words: "on", URL: "/condensing?tenant=payments"}}, CanMode: true,
	}
	o.Account(&ui.OverviewReads{Since: day.AddDate(0, 0, 1-days), Until: day, Rows: accounts(days, clients)})
	o.Tables = append(o.Tables, ui.Table{
		Title: "Budgets", Columns: []string{"Tenant", "Period", "Spent", "Held", "Limit", "Ends, UTC"},
		Rows: []ui.TableRow{{Cells: []string{"payments", "month", "12.00 USD", "0.00 USD", "50.00 USD", "1 Dec 2026, 00:00"}}},
	})
	return o
}

func emptyOverview() ui.Overview {
	o := ui.Overview{Title: "The last 14 days", Empty: "Nothing has gone through the proxy yet.", Holdouts: ui.Holdouts{Empty: "No sessions are held out."}, Tables: []ui.Table{{Title: "Budgets", Empty: "No tenant has a budget."}}}
	o.Account(&ui.OverviewReads{Since: day.AddDate(0, 0, -13), Until: day})
	return o
}

// TestTheOverviewFitsAPage checks the size of the overview with as many days and clients as it shows.
func TestTheOverviewFitsAPage(t *testing.T) {
	fixed := 0
	for _, name := range []string{"style.css", "keys.js", "icon.svg"} {
		text, err := os.ReadFile(filepath.Join("assets", name))
		if err != nil {
			t.Fatal(err)
		}
		fixed += len(text)
	}
	page := render(t, overviewPage(90, 200))
	if size := len(page) + fixed; size > maxPage {
		t.Errorf("the overview has %d bytes with its assets, want at most %d", size, maxPage)
	}
	if text := string(page); !strings.Contains(text, "more with smaller bills are in the CSV.") {
		t.Error("nothing says that clients are left out")
	}
}

// TestLossesAreShown checks that a day that condensing made dearer is below the axis and red, and that a total that is a loss is called one.
func TestLossesAreShown(t *testing.T) {
	row := func(on string, notSent, rewritten account.Pico) account.Row {
		return account.Row{Key: account.Key{Day: on, Tenant: "a", Model: "m"}, Sums: account.Sums{Requests: 1, Sent: 1000, Forwarded: 900, Charged: 10 * dollar, NotSent: notSent, Rewritten: rewritten}}
	}
	var o ui.Overview
	o.Account(&ui.OverviewReads{Since: day.AddDate(0, 0, -1), Until: day, Rows: []account.Row{row("2026-11-28", 2*dollar, -dollar), row("2026-11-29", dollar, -3*dollar)}})
	if len(o.Days) == 0 {
		t.Fatal("there is no chart")
	}
	for _, chart := range o.Days {
		gain, loss := chart.Bars[0], chart.Bars[1]
		if gain.Loss || gain.Y >= chart.Zero || !loss.Loss || loss.Y != chart.Zero || loss.H <= gain.H || loss.Value != "-2.00" {
			t.Errorf("%s: %+v %+v, the axis is at %f", chart.Class, gain, loss, chart.Zero)
		}
	}
	if net := o.Tiles[0]; net.Sign != -1 || net.Figure != "-1.00 USD" || !strings.HasPrefix(net.Text, "lost") {
		t.Errorf("%+v", net)
	}
	if share := o.Tiles[2]; share.Sign != -1 || share.Figure != "5%" || share.Text != "more than the bill without Dewpoint" {
		t.Errorf("%+v", share)
	}
	if bill := o.Tiles[1]; bill.Figure != "20.00 USD" || bill.Text != "bill; 19.00 USD without Dewpoint" {
		t.Errorf("%+v", bill)
	}
}
