package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/internal/figures"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/app"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/health"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/terminal"
)

// savingsQuery is what a report of savings is asked for.
type savingsQuery struct {
	since, until string
	by           []string
	form         string // table, json or csv
}

// showSavings prints what requests cost, with and without Dewpoint: from the proxy that runs on this machine, or from its store.
func showSavings(ctx context.Context, args []string, out, errs io.Writer) error {
	fs := flags("savings", errs)
	since := fs.String("since", "30d", "the first day, or how long ago it was, such as 7d")
	until := fs.String("until", "", "the last day, likewise (default today)")
	by := fs.String("by", "", "what to group by, separated by commas: "+strings.Join(account.Dimensions(), ", "))
	asJSON := fs.Bool("json", false, "print the report of the admin API")
	asCSV := fs.Bool("csv", false, "print the rows as CSV")
	admin := fs.String("admin", "", "address of the proxy's admin port (default: as configured)")
	file := fs.String("config", "", "the proxy's configuration file (default: that of the proxy running on this machine)")
	if err := parse(fs, args, out); err != nil {
		return err
	}
	if fs.NArg() > 0 || *asJSON && *asCSV {
		return usageError{errors.New("dewpoint: savings takes flags only, and one of --json and --csv: see 'dewpoint savings --help'")}
	}
	q := savingsQuery{since: *since, until: *until, form: "table"}
	for part := range strings.SplitSeq(*by, ",") {
		if part != "" {
			q.by = append(q.by, part)
		}
	}
	switch {
	case *asJSON:
		q.form = "json"
	case *asCSV:
		q.form = "csv"
	}
	cfg, err := runningConfig(*file)
	if cfg == nil {
		return usageError{err}
	}
	addr, err := adminAddress(*admin, *file)
	if err != nil {
		return usageError{err}
	}
	return q.show(ctx, cfg, addr, out)
}

// show asks the proxy for the report or, if none runs, makes it from the store.
func (q savingsQuery) show(ctx context.Context, cfg *config.Config, addr string, out io.Writer) error {
	text, err := askAdmin(ctx, addr, cfg.Admin.Token.Reveal(), "/api/v1/savings?"+q.values().Encode())
	if err == nil && q.form != "table" {
		_, err = out.Write(text)
		return err
	}
	var report savingsReport
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		report.Report, err = q.fromStore(ctx, cfg)
	case err == nil:
		err = json.Unmarshal(text, &report)
	}
	if err != nil {
		return fmt.Errorf("savings: %w", err)
	}
	switch q.form {
	case "json":
		return json.NewEncoder(out).Encode(report.Report)
	case "csv":
		return report.WriteCSV(out)
	}
	if err := printReport(out, &report.Report); err != nil {
		return err
	}
	return printHoldouts(out, report.Holdouts)
}

// savingsReport is a report of savings with how the tenants' holdouts stand, which only a running proxy says.
type savingsReport struct {
	account.Report
	Holdouts []holdoutReport `json:"holdouts"`
}

// holdoutReport is what the admin API says of a tenant's holdout.
type holdoutReport struct {
	Tenant    string
	Share     float64
	Ended     bool
	Condensed holdoutArm
	HeldOut   holdoutArm                   `json:"held_out"`
	SavedUSD  *struct{ Low, High float64 } `json:"saved_usd_per_session"`
	Verdict   string
}

// holdoutArm is an arm of a holdout.
type holdoutArm struct {
	Sessions         int64
	USDPerSession    float64 `json:"usd_per_session"`
	StepsPerSession  float64 `json:"steps_per_session"`
	ErrorsPerSession float64 `json:"errors_per_session"`
}

// printHoldouts prints a table with a row for each arm, and what is known of the difference.
func printHoldouts(out io.Writer, all []holdoutReport) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "HOLDOUT\tARM\tSESSIONS\tBILL EACH\tSTEPS EACH\tERRORS EACH\t")
	for i := range all {
		h := &all[i]
		for _, arm := range []struct {
			name string
			of   *holdoutArm
		}{{"condensed", &h.Condensed}, {"held out", &h.HeldOut}} {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.1f\t%.2f\t\n", terminal.Name(h.Tenant), arm.name, grouped(arm.of.Sessions),
				dollars(account.FromUSD(arm.of.USDPerSession)), arm.of.StepsPerSession, arm.of.ErrorsPerSession)
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print holdouts: %w", err)
	}
	for i := range all {
		fmt.Fprintln(out, holdoutSentence(&all[i]))
	}
	return nil
}

// holdoutSentence says what a holdout has shown so far.
func holdoutSentence(h *holdoutReport) string {
	text := fmt.Sprintf("%s: %.3g%% of the sessions are held out", terminal.Name(h.Tenant), 100*h.Share)
	if h.Ended {
		text = terminal.Name(h.Tenant) + ": ended by an override"
	}
	if s := h.SavedUSD; s != nil {
		text += fmt.Sprintf("; condensing saves %s to %s a session (95%%)", dollars(account.FromUSD(s.Low)), dollars(account.FromUSD(s.High)))
	}
	return text + ". Verdict: " + h.Verdict + "."
}

func (q savingsQuery) values() url.Values {
	v := url.Values{"since": {q.since}}
	if q.until != "" {
		v.Set("until", q.until)
	}
	if len(q.by) > 0 {
		v.Set("by", strings.Join(q.by, ","))
	}
	if q.form == "csv" {
		v.Set("format", "csv")
	}
	return v
}

// fromStore makes the report from the store, which no proxy uses.
func (q savingsQuery) fromStore(ctx context.Context, cfg *config.Config) (report account.Report, err error) {
	now := time.Now()
	since, err := account.ParseTime(q.since, now)
	until := now
	if err == nil && q.until != "" {
		until, err = account.ParseTime(q.until, now)
	}
	if err == nil {
		err = account.CheckDimensions(q.by)
	}
	if err != nil {
		return report, err
	}
	rows, err := app.ReadTotals(ctx, cfg, since, until)
	if err != nil {
		return report, fmt.Errorf("no proxy answers, and its store cannot be read: %w", err)
	}
	day := func(t time.Time) string { return t.UTC().Format(time.DateOnly) }
	return account.NewReport(day(since), day(until), q.by, rows), nil
}

// askTime bounds a request to the admin port.
const askTime = 30 * time.Second

// maxAdminAnswer bounds an answer of the admin port, in bytes.
const maxAdminAnswer = 64 << 20

// askAdmin returns the answer of the admin API to a GET request.
func askAdmin(ctx context.Context, addr, token, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health.Reachable(addr)+path, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if host, port, err := net.SplitHostPort(addr); err == nil && token == "" && net.ParseIP(host) == nil {
		req.Host = net.JoinHostPort("localhost", port) // the port accepts loopback names only
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // ignores the proxy of the environment
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAdminAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		var refused struct {
			Error struct{ Message, Code string }
		}
		_ = json.Unmarshal(text, &refused) // without it, the status says enough
		err = adminError{resp.Status, refused.Error.Code, refused.Error.Message}
	}
	return text, err
}

// adminError is an error that the admin API answered with.
type adminError struct{ status, code, message string }

func (e adminError) Error() string {
	if e.message == "" {
		return "the admin port answered " + e.status
	}
	return e.message
}

// printReport prints a report for people.
func printReport(out io.Writer, r *account.Report) error {
	total := &r.Total
	fmt.Fprintf(out, "From %s to %s (UTC): %s requests, %s steps, %s condensations, %s failed.\n", r.Since, r.Until,
		grouped(total.Requests+total.Plan.Requests), grouped(total.Steps+total.Plan.Steps), grouped(total.Condensations), grouped(total.Failed))
	if total.Requests > 0 {
		fmt.Fprintln(out, moneySentence(total))
		fmt.Fprintln(out, tokenSentence(total.Sent, total.Forwarded))
	}
	for _, note := range notes(total) {
		fmt.Fprintln(out, note)
	}
	if len(r.By) == 0 || len(r.Rows) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, strings.ToUpper(strings.Join(r.By, "\t"))+"\tSTEPS\tTOKENS SENT\tFORWARDED\tBILL\tWITHOUT\tSAVED\t")
	for i := range r.Rows {
		l := &r.Rows[i]
		for _, dimension := range r.By {
			fmt.Fprintf(table, "%s\t", terminal.Name(l.Named(dimension)))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t\n", grouped(l.Steps+l.Plan.Steps), grouped(l.Sent+l.Plan.Sent), grouped(l.Forwarded+l.Plan.Forwarded),
			dollars(l.USD.Bill), dollars(l.USD.Without), dollars(l.USD.Saved))
	}
	return table.Flush()
}

func moneySentence(l *account.Line) string {
	own := ""
	if l.Own.Charged > 0 {
		own = fmt.Sprintf(", of which %s for Dewpoint's own calls", dollars(l.Own.Charged))
	}
	bill, without, saved := l.USD.Bill, l.USD.Without, l.USD.Saved
	switch {
	case saved > 0:
		return fmt.Sprintf("The bill is %s instead of %s%s: saved %s (%.0f%%).", dollars(bill), dollars(without), own, dollars(saved), 100*saved.USD()/without.USD())
	case saved < 0:
		return fmt.Sprintf("The bill is %s instead of %s%s: %s more than without Dewpoint.", dollars(bill), dollars(without), own, dollars(-saved))
	}
	return fmt.Sprintf("The bill is %s%s, the same as without Dewpoint.", dollars(bill), own)
}

func tokenSentence(sent, forwarded int64) string {
	if sent == 0 || forwarded > sent {
		return fmt.Sprintf("Prompt tokens: %s sent by agents, %s forwarded.", grouped(sent), grouped(forwarded))
	}
	return fmt.Sprintf("Prompt tokens: %s sent by agents, %s forwarded (%.0f%% fewer).", grouped(sent), grouped(forwarded), 100*float64(sent-forwarded)/float64(sent))
}

// notes say what the amounts leave out, and what is reckoned in them.
func notes(l *account.Line) (all []string) {
	say := func(n int64, format string, args ...any) {
		if n > 0 {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	say(l.Reckoned, "Upstream did not report the usage of %s requests in full; their cost is by Dewpoint's own count.", grouped(l.Reckoned))
	say(l.Unpriced, "%s requests went to models without a known price and are not in the amounts: set models.NAME.price.", grouped(l.Unpriced))
	say(l.Own.Unpriced, "%s calls of Dewpoint's own went to models without a known price and are not in the amounts.", grouped(l.Own.Unpriced))
	if l.Spared != 0 {
		all = append(all, fmt.Sprintf("Condensing would have saved about %s more where it is only observed.", dollars(l.Spared)))
	}
	p := &l.Plan
	say(p.Steps, "Subscriptions, which are not billed by tokens: %s steps. %s", grouped(p.Steps), tokenSentence(p.Sent, p.Forwarded))
	return all
}

func grouped(n int64) string { return figures.Grouped(int(n)) }

// dollars writes an amount in cents, or a small one with four digits.
func dollars(p account.Pico) string {
	sign, usd := "", p.USD()
	if usd < 0 {
		sign, usd = "-", -usd
	}
	if usd > 0 && usd < 0.1 {
		return fmt.Sprintf("%s$%.4f", sign, usd)
	}
	return fmt.Sprintf("%s$%.2f", sign, usd)
}
