package admin

import (
	"cmp"
	"errors"
	"fmt"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/holdout"
	"strconv"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/admin/ui"
	"github.com/dewpoint-proxy/dewpoint/session"
)

const (
	recentSessions = 12
	overviewDays   = 14
	activeFor      = 10 * time.Minute
)

// ranges are the numbers of days that an overview can show.
func ranges() []int { return []int{7, overviewDays, 30, 90} }

// overview is the first page. Without its store it says what is wrong, and leaves out the figures.
func (p *pages) overview(v *visit) (ui.Page, error) {
	now := time.Now()
	days := daysAsked(v)
	out := ui.Overview{Title: fmt.Sprintf("The last %d days", days), CanMode: v.who.mayChange() && v.who.csrf != "", Trouble: p.trouble(v), Ranges: rangeLinks(days)}
	out.Note = "All tenants, days in UTC"
	if !v.who.unlimited() {
		out.Note = "The tenants of your token only, days in UTC"
	}
	since := now.AddDate(0, 0, 1-days)
	for _, add := range []func(*visit, *ui.Overview) error{
		func(v *visit, out *ui.Overview) error { return p.addAccount(v, out, since, now) },
		p.addBudgets, p.addHoldouts,
		func(v *visit, out *ui.Overview) error { return p.addSessions(v, out, now) },
	} {
		if err := add(v, &out); errors.Is(err, session.ErrUnavailable) {
			p.o.OnError(err)
			return withoutStore(out), nil
		} else if err != nil {
			return nil, err
		}
	}
	out.Modes = p.modes(v)
	return out, nil
}

// withoutStore is the overview while the store cannot be read.
func withoutStore(o ui.Overview) ui.Overview {
	const why = "The store cannot be read at the moment. Nothing is lost by that: reload the page when it is back."
	return ui.Overview{Title: o.Title, Note: o.Note, Ranges: o.Ranges, Trouble: o.Trouble, NoDays: why, Empty: why, Holdouts: ui.Holdouts{Empty: why}}
}

// daysAsked returns how many days the overview is to show.
func daysAsked(v *visit) int {
	asked, _ := strconv.Atoi(v.URL.Query().Get("days"))
	for _, days := range ranges() {
		if days == asked {
			return days
		}
	}
	return overviewDays
}

func rangeLinks(shown int) (links []ui.Link) {
	for _, days := range ranges() {
		link := ui.Link{Text: fmt.Sprintf("%d days", days), URL: fmt.Sprintf("/?days=%d", days)}
		if days == shown {
			link.URL = ""
		}
		links = append(links, link)
	}
	return append(links, ui.Link{Text: "CSV", URL: fmt.Sprintf("%s/savings?since=%dd&by=day,tenant,model,agent,agent_version&format=csv", base, shown-1)})
}

// remedy says what a failed check means, and what to do.
type remedy struct{ title, hint string }

var remedies = map[string]remedy{
	"accepting":   {"This replica takes no requests", "If it does not go on by itself within a minute, see the log."},
	"store":       {"The store is degraded", "See the log for the cause. Check that its disk has room, or that Redis can be reached (docs/operations.md, Store degraded)."},
	"config":      {"The newest configuration is not in force", "Run dewpoint check-config FILE, and mend what it reports. The file is then read again; a restart before that would fail."},
	"tenants":     {"The configuration of a tenant is refused", "Run dewpoint check-config on the tenant's file, and mend what it reports (docs/operations.md, Tenant refused)."},
	"summarisers": {"A summariser fails", "Check its key, its limits and its server (docs/troubleshooting.md). It is tried again by itself."},
}

// trouble says what is degraded, and what to do.
func (p *pages) trouble(v *visit) (all []ui.Notice) {
	if p.o.Troubles == nil {
		return nil
	}
	for _, t := range p.o.Troubles(v.Context()) {
		if t.Check == "tenants" && !v.who.unlimited() {
			continue // it names other tenants
		}
		r := remedies[t.Check]
		all = append(all, ui.Notice{Title: cmp.Or(r.title, "The check "+t.Check+" fails"), Text: sentence(t.Detail), Hint: r.hint})
	}
	return all
}

// sentence writes the detail of a check as a sentence.
func sentence(detail string) string {
	if detail == "" {
		return ""
	}
	return strings.ToUpper(detail[:1]) + detail[1:] + "."
}

// addAccount adds what requests cost, with and without Dewpoint.
func (p *pages) addAccount(v *visit, out *ui.Overview, since, until time.Time) error {
	rows, err := p.rowsOf(v.Request, since, until)
	if err != nil {
		return err
	}
	out.Account(&ui.OverviewReads{Since: since, Until: until, Rows: rows})
	return nil
}

// addBudgets adds what is spent of the budgets, and the spent ones to what is wrong.
func (p *pages) addBudgets(v *visit, out *ui.Overview) error {
	list, err := p.budgetsOf(v.Request)
	if err != nil {
		return err
	}
	table := ui.Table{
		Title: "Budgets", Columns: []string{"Tenant", "Period", "Spent", "Held", "Limit", "Ends, UTC"},
		Empty: "No tenant has a budget. Set limits.budget to bound what a tenant spends in a day or a month.",
	}
	for i := range list.Budgets {
		b := &list.Budgets[i]
		amount := func(n float64) string {
			if b.Unit == "usd" {
				return ui.USD(n)
			}
			return ui.Tokens(int(n)) + " " + b.Unit
		}
		row := ui.TableRow{Cells: []string{b.Tenant, b.Period, amount(b.Spent), amount(b.Held), amount(b.Limit), ui.When(b.End)}}
		if b.Spent >= b.Limit {
			out.Trouble = append(out.Trouble, ui.Notice{
				Title: "The budget of tenant " + b.Tenant + " is spent", Text: amount(b.Spent) + " of " + amount(b.Limit) + ", until " + ui.When(b.End) + " UTC.",
				Hint: "Raise limits.budget, or wait for the next period (docs/limits.md).",
			})
		}
		table.Rows = append(table.Rows, row)
	}
	out.Tables = append(out.Tables, table)
	return nil
}

// addHoldouts adds the comparisons of held-out sessions with condensed ones.
func (p *pages) addHoldouts(v *visit, out *ui.Overview) error {
	list, err := p.holdoutsOf(v.Request)
	if err != nil {
		return err
	}
	out.Holdouts.Empty = "No sessions are held out. holdout: 0.05 leaves a twentieth of a tenant's sessions uncondensed, and measures here what condensing saves."
	for i := range list {
		out.Holdouts.Facts = append(out.Holdouts.Facts, ui.Fact{Name: list[i].Tenant, Text: holdoutWords(&list[i])})
	}
	return nil
}

// holdoutWords says how an experiment stands.
func holdoutWords(h *holdout.Report) string {
	text := fmt.Sprintf("%.3g%% of sessions are held out", 100*h.Share)
	if h.Ended {
		text = "ended by an override"
	}
	for _, arm := range []struct {
		name         string
		sessions     int64
		usd, average float64
	}{{"condensed", h.Condensed.Sessions, h.Condensed.USD, h.Condensed.USDPerSession}, {"held out", h.HeldOut.Sessions, h.HeldOut.USD, h.HeldOut.USDPerSession}} {
		text += fmt.Sprintf("; %s: %s at %s each", arm.name, ui.Plural(int(arm.sessions), "session"), ui.USD(arm.average))
	}
	if s := h.SavedUSD; s != nil {
		text += fmt.Sprintf("; saved a session: %s to %s", ui.USD(s.Low), ui.USD(s.High))
	}
	return text + ". Verdict: " + h.Verdict + "."
}

// addSessions adds how many sessions there are, and the newest.
func (p *pages) addSessions(v *visit, out *ui.Overview, now time.Time) error {
	all, err := p.list.sessions(v.Context())
	if err != nil {
		return err
	}
	kept, active := 0, 0
	for i := range all {
		if !v.who.sees(all[i].Tenant) {
			continue
		}
		kept++
		if now.Sub(all[i].Seen) < activeFor {
			active++
		}
		if len(out.Recent) == recentSessions {
			continue
		}
		row, err := p.sessionRow(v, &all[i])
		if err != nil {
			return err
		}
		out.Recent = append(out.Recent, row)
	}
	if kept == 0 {
		out.Empty = "Nothing has gone through the proxy yet, or all of it has expired. Point an agent at it: dewpoint run -- your-agent."
		return nil
	}
	out.Tiles = append(out.Tiles, ui.Tile{Figure: ui.Plural(kept, "session"), Text: fmt.Sprintf("kept; %d active in the last ten minutes", active), URL: "/sessions"})
	return nil
}

// modes says for each tenant whether its histories are condensed.
func (p *pages) modes(v *visit) (all []ui.Mode) {
	for _, t := range p.o.Settings.Tenants() {
		if !v.who.sees(t.Name) {
			continue
		}
		m := ui.Mode{Tenant: t.Name, Words: t.Condensing.InForce.words(), URL: "/condensing?tenant=" + t.Name}
		if o := t.Condensing.Override; o != nil {
			m.Changed, m.Until = true, ui.When(o.Until)+" UTC"
			if o.Reason != "" {
				m.Until += ": " + o.Reason
			}
		}
		all = append(all, m)
	}
	return all
}
