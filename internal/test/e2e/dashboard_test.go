package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	running "github.com/dewpoint-proxy/dewpoint/internal/test/process"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// TestDashboard has a real Prometheus scrape a proxy that condenses a run. Each query of the dashboard succeeds, those about
// events of the run have data, and the alerts load and do not fire.
func TestDashboard(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: make full runs Prometheus")
	}
	t.Parallel()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("NOT TESTED: the dashboard's queries over a real run: prometheus is not there (Debian's package prometheus has it)")
	}
	s := newSetting(t, fakeupstream.Options{})
	p := serve(t, "--config", s.config(t, embedded(newStore(t))))
	prometheus := startPrometheus(t, program, p.Admin)
	prometheus.scraped(t, `count_over_time(dewpoint_build_info[5m]) >= 2`) // a rate needs earlier samples
	run := demo.Sample()
	for _, n := range []int{14, 24, 30, len(run.Messages)} { // the first is below the limit
		ok(t, send(t, p, body(run.Messages[:n])).finish())
	}
	prometheus.scraped(t, `sum(dewpoint_requests_total) == 4`)
	prometheus.scraped(t, `min(count_over_time(dewpoint_upstream_usd_total[5m])) >= 3`)
	quiet := map[string]bool{ // events that the run does not have
		"What went wrong": true, "Summariser failures": true, "Over a limit and forwarded whole": true, "Overflows relieved": true,
		"Summarisers cooling down": true, "Reloads": true, "Errors and losses": true, "Rollouts": true,
	}
	for _, q := range dashboardQueries(t) {
		if !quiet[q.title] {
			prometheus.scraped(t, q.expr) // waits, since a scrape may fail on a busy machine
		} else if _, err := prometheus.query(q.expr); err != nil {
			t.Errorf("%s: %v: %s", q.title, err, q.expr)
		}
	}
	firing, err := prometheus.query(`ALERTS{alertstate="firing"}`)
	ok(t, err)
	if len(firing) > 0 {
		t.Errorf("alerts of a run without trouble: %s", firing)
	}
	if rules := prometheus.rules(t); rules < 15 {
		t.Errorf("%d alerts were loaded", rules)
	}
}

type panelQuery struct{ title, expr string }

// dashboardQueries returns the queries of panels, variables and annotations, with all values selected.
func dashboardQueries(t *testing.T) (all []panelQuery) {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/helm/files/dashboard.json")
	ok(t, err)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Annotations struct{ List []struct{ Name, Expr string } }
	}
	ok(t, json.Unmarshal(text, &board))
	chosen := strings.NewReplacer("$__rate_interval", "5m", "$__range", "5m", "$namespace", ".*", "$job", ".*", "$tenant", ".*")
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all = append(all, panelQuery{p.Title, chosen.Replace(target.Expr)})
		}
	}
	for _, a := range board.Annotations.List {
		all = append(all, panelQuery{a.Name, chosen.Replace(a.Expr)})
	}
	if len(all) < 50 {
		t.Fatalf("only %d queries", len(all))
	}
	return all
}

// prometheusServer is a running Prometheus.
type prometheusServer string

// startPrometheus starts a Prometheus that scrapes an admin port once a second.
func startPrometheus(t *testing.T, program, admin string) prometheusServer {
	t.Helper()
	dir := t.TempDir()
	alerts, err := filepath.Abs("../../../deploy/helm/files/alerts.yaml")
	ok(t, err)
	addr, err := running.FreeAddr()
	ok(t, err)
	file := filepath.Join(dir, "prometheus.yml")
	ok(t, os.WriteFile(file, fmt.Appendf(nil, `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
  - job_name: dewpoint
    static_configs: [{targets: [%s], labels: {namespace: agents}}]
`, strconv.Quote(alerts), strconv.Quote(admin)), 0o600))
	c := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--log.level=error")
	c.SysProcAttr = running.DieWithParent(syscall.SIGKILL)
	c.Stderr = os.Stderr
	ok(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return prometheusServer("http://" + addr)
}

func (p prometheusServer) get(path string, into any) error {
	resp, err := http.Get(string(p) + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return errors.New(answer.Error)
	}
	return nil
}

// query returns the current series of an expression. A scalar is one series.
func (p prometheusServer) query(expr string) ([]json.RawMessage, error) {
	var data struct {
		ResultType string
		Result     json.RawMessage
	}
	if err := p.get("/api/v1/query?query="+url.QueryEscape(expr), &data); err != nil {
		return nil, err
	}
	if data.ResultType == "scalar" {
		return []json.RawMessage{data.Result}, nil
	}
	var series []json.RawMessage
	return series, json.Unmarshal(data.Result, &series)
}

// scraped waits until an expression has a series.
func (p prometheusServer) scraped(t *testing.T, expr string) {
	t.Helper()
	sessiontest.Eventually(t, expr, func() error {
		series, err := p.query(expr)
		if err == nil && len(series) == 0 {
			err = errors.New("no series")
		}
		return err
	})
}

// rules returns the number of active alerts, after waiting until each was evaluated without an error.
func (p prometheusServer) rules(t *testing.T) (n int) {
	t.Helper()
	sessiontest.Eventually(t, "alerts are evaluated", func() error {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
		if err := p.get("/api/v1/rules", &data); err != nil {
			return err
		}
		n = 0
		for _, g := range data.Groups {
			for _, r := range g.Rules {
				if r.Health != "ok" {
					return fmt.Errorf("%s: %s %s", r.Name, r.Health, r.LastError)
				}
				n++
			}
		}
		return nil
	})
	return n
}
