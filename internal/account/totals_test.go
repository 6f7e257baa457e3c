package account_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
)

func TestEveryFieldOfARowIsStored(t *testing.T) {
	var want account.Row
	n := 0
	fill(reflect.ValueOf(&want).Elem(), &n)
	total := want.Key.Total(&want.Sums)
	got, err := account.RowOf(&total)
	if err != nil || got != want {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
	total.Values = append(total.Values, 5) // of a later version
	if got, err := account.RowOf(&total); err != nil || got != want {
		t.Errorf("%v, %+v", err, got)
	}
}

// TestSumsDoNotOverflow: a sum stays at its limit instead of turning negative.
func TestSumsDoNotOverflow(t *testing.T) {
	s := account.Sums{Input: math.MaxInt64 - 1, Rewritten: math.MinInt64 + 1}
	s.Add(&account.Sums{Input: 5, Rewritten: -5, Output: 7})
	if s != (account.Sums{Input: math.MaxInt64, Rewritten: math.MinInt64, Output: 7}) {
		t.Errorf("%+v", s)
	}
}

func TestAmountsAreExact(t *testing.T) {
	for amount, want := range map[account.Pico]string{
		0: "0", 1: "0.000000000001", 1_000_000_000_000: "1", 12_345_678_901_234_567: "12345.678901234567", -250_000_000_000: "-0.25", -1 << 63: "-9223372.036854775808",
	} {
		text, err := json.Marshal(amount)
		var back account.Pico
		if err != nil || string(text) != want || json.Unmarshal(text, &back) != nil || back != amount {
			t.Errorf("%d is %s, and read as %d; %v", amount, text, back, err)
		}
	}
}

func TestReportGroupsAndAddsUp(t *testing.T) {
	row := func(day, tenant, agent string, kind account.Kind, charged, notSent account.Pico) account.Row {
		return account.Row{
			Key:  account.Key{Day: day, Tenant: tenant, Model: "m", Client: account.Client{Agent: agent}, Kind: kind},
			Sums: account.Sums{Requests: 1, Steps: 1, Sent: 30, Forwarded: 10, Input: 10, Charged: charged, NotSent: notSent},
		}
	}
	rows := []account.Row{
		row("2026-11-29", "a", "x", account.Billed, 100, 40), row("2026-11-30", "a", "x", account.Billed, 50, 10),
		row("2026-11-30", "b", "=cmd()", account.Billed, 7, 0), row("2026-11-30", "a", "x", account.Own, 60, 0), row("2026-11-30", "a", "x", account.Plan, 900, 900),
	}
	r := account.NewReport("2026-11-29", "2026-11-30", []string{"tenant"}, rows)
	if len(r.Rows) != 2 || r.Rows[0].Tenant != "a" || r.Rows[0].Day != "" {
		t.Fatalf("%+v", r.Rows)
	}
	a := r.Rows[0]
	if want := (account.Comparison{Bill: 210, Without: 200, Saved: -10}); a.USD != want || a.Requests != 2 || a.Own.Calls != 1 || a.Plan.Steps != 1 || a.Plan.Sent != 30 || a.Sent != 60 {
		t.Errorf("%+v", a)
	}
	if want := (account.Comparison{Bill: 217, Without: 207, Saved: -10}); r.Total.USD != want || r.Total.Requests != 3 {
		t.Errorf("total %+v", r.Total)
	}
	var text strings.Builder
	r = account.NewReport("2026-11-29", "2026-11-30", []string{"day", "agent"}, rows)
	if err := r.WriteCSV(&text); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	columns := strings.Count(lines[0], ",")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "day,agent,requests,") || !strings.HasPrefix(lines[2], "2026-11-30,'=cmd(),1,") {
		t.Errorf("%s", &text)
	}
	for _, line := range lines {
		if strings.Count(line, ",") != columns {
			t.Errorf("%s", line)
		}
	}
}

func TestClientsAreBounded(t *testing.T) {
	var clients account.Clients
	seen := map[account.Client]bool{}
	for i := range 1000 {
		seen[clients.Of(account.Client{Agent: "made-up", Version: strings.Repeat("1", i%16) + string(rune('a'+i%26)) + string(rune('a'+i/26%26))})] = true
	}
	if len(seen) > 201 || !seen[account.Client{Agent: account.OtherClient}] {
		t.Errorf("%d clients are told apart", len(seen))
	}
}

func TestTimesAreRead(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"7d": now.AddDate(0, 0, -7), "0d": now, "36h": now.Add(-36 * time.Hour), "2026-11-01": time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
		"2026-11-01T10:00:00Z": time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC),
	} {
		if got, err := account.ParseTime(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "yesterday", "-7d", "-1h", "9999999d", "2026-13-01"} {
		if _, err := account.ParseTime(text, now); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
