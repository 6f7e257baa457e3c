// Package deploy holds what is deployed with the binary. Its tests keep that in step with the binary.
package deploy

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/dewpoint-proxy/dewpoint/internal/observe"
)

var (
	metricName = regexp.MustCompile(`dewpoint_[a-z_]+`)
	selector   = regexp.MustCompile(`(dewpoint_[a-z_]+)\{([^}]*)\}`)
	labelName  = regexp.MustCompile(`([a-z_]+) *(?:=~|!~|!=|=) *"`)
	grouping   = regexp.MustCompile(`\bby \(([a-z_, ]*)\)`)
)

// byPrometheus are labels that Prometheus adds to every series.
var byPrometheus = []string{"namespace", "job", "instance", "pod", "le"}

type query struct{ from, expr string }

// metricOf gives the metric that a series is of, and whether there is one.
func metricOf(names map[string][]string, series string) (string, bool) {
	if _, ok := names[series]; ok {
		return series, true
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, cut := strings.CutSuffix(series, suffix); cut {
			if _, ok := names[base]; ok && strings.HasSuffix(base, "_seconds") {
				return base, true
			}
		}
	}
	return "", false
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// dashboard gives the queries of all panels and variables.
func dashboard(t *testing.T) []query {
	t.Helper()
	var board struct {
		SchemaVersion int
		Templating    struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read(t, "helm/files/dashboard.json"), &board); err != nil {
		t.Fatal(err)
	}
	if board.SchemaVersion < 36 {
		t.Errorf("schema version %d", board.SchemaVersion)
	}
	var all []query
	ids := map[int]bool{}
	for _, v := range board.Templating.List {
		if v.Definition != "" {
			all = append(all, query{"variable " + v.Name, v.Definition})
		}
	}
	for _, p := range board.Panels {
		if ids[p.ID] {
			t.Errorf("panel %d is there twice", p.ID)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			all = append(all, query{"panel " + p.Title, target.Expr})
		}
	}
	return all
}

type rule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal(read(t, "helm/files/alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// TestQueriesNameWhatThereIs holds that dashboard and alerts speak of metrics and labels that the binary has.
func TestQueriesNameWhatThereIs(t *testing.T) {
	names := observe.Names()
	queries := dashboard(t)
	for _, r := range rules(t) {
		queries = append(queries, query{"alert " + r.Alert, r.Expr})
	}
	if len(queries) < 40 {
		t.Fatalf("only %d queries were found", len(queries))
	}
	for _, q := range queries {
		for _, problem := range problems(names, q.expr) {
			t.Errorf("%s: %s in %s", q.from, problem, q.expr)
		}
	}
}

// problems names the metrics and labels of a query that do not exist.
func problems(names map[string][]string, expr string) []string {
	var out, labels []string
	for _, series := range metricName.FindAllString(expr, -1) {
		metric, ok := metricOf(names, series)
		if !ok {
			out = append(out, "no metric "+series)
		}
		labels = append(labels, names[metric]...)
	}
	for _, found := range selector.FindAllStringSubmatch(expr, -1) {
		metric, _ := metricOf(names, found[1])
		for _, label := range labelName.FindAllStringSubmatch(found[2], -1) {
			if !slices.Contains(names[metric], label[1]) {
				out = append(out, "no label "+label[1]+" of "+found[1])
			}
		}
	}
	for _, group := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(group[1], ",") {
			if label = strings.TrimSpace(label); !slices.Contains(labels, label) && !slices.Contains(byPrometheus, label) {
				out = append(out, "no label "+label)
			}
		}
	}
	return out
}

func TestProblemsAreFound(t *testing.T) {
	names := map[string][]string{"dewpoint_a_total": {"tenant"}, "dewpoint_b_seconds": {"op"}}
	for expr, want := range map[string]int{
		`sum by (tenant) (rate(dewpoint_a_total{tenant=~"$tenant"}[5m]))`:                0,
		`histogram_quantile(0.9, sum by (le, op) (rate(dewpoint_b_seconds_bucket[5m])))`: 0,
		`dewpoint_a`:                           1,
		`dewpoint_a_total_bucket`:              1,
		`dewpoint_a_total{op="x"}`:             1,
		`sum by (op) (dewpoint_a_total)`:       1,
		`dewpoint_b_seconds_sum{tenant!~"x"}`:  1,
		`sum by (model, op) (dewpoint_b_nope)`: 3,
	} {
		if got := problems(names, expr); len(got) != want {
			t.Errorf("%s: %q, want %d", expr, got, want)
		}
	}
}

// TestAlertsAreWhole holds that each alert says what it means and where to read on, and that this is there.
func TestAlertsAreWhole(t *testing.T) {
	anchors := map[string]bool{}
	for line := range strings.Lines(string(read(t, "../docs/operations.md"))) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			anchors[strings.ReplaceAll(strings.ToLower(strings.TrimSpace(title)), " ", "-")] = true
		}
	}
	named := map[string]bool{}
	for _, r := range rules(t) {
		if named[r.Alert] || r.Alert == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%q is not whole, or there twice", r.Alert)
		}
		named[r.Alert] = true
		file, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "#")
		if file != "docs/operations.md" || !anchors[anchor] {
			t.Errorf("%s: nothing is at %s", r.Alert, r.Annotations["runbook_url"])
		}
	}
	if len(named) < 12 {
		t.Errorf("only %d alerts", len(named))
	}
}

// TestOperationsExplainRowsAndAlerts holds that docs/operations.md speaks of each row of the dashboard and of each alert.
func TestOperationsExplainRowsAndAlerts(t *testing.T) {
	page := string(read(t, "../docs/operations.md"))
	var board struct {
		Panels []struct{ Type, Title string }
	}
	if err := json.Unmarshal(read(t, "helm/files/dashboard.json"), &board); err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, p := range board.Panels {
		if p.Type != "row" {
			continue
		}
		if rows++; !strings.Contains(page, "- **"+p.Title+".** ") {
			t.Errorf("the row %q is not explained", p.Title)
		}
	}
	if rows < 5 {
		t.Errorf("only %d rows", rows)
	}
	for _, r := range rules(t) {
		if !strings.Contains(page, "`"+r.Alert+"`") {
			t.Errorf("%s is not explained", r.Alert)
		}
	}
}

// TestMetricsAreDocumented holds that docs/metrics.md has all metrics with their labels, and no others.
func TestMetricsAreDocumented(t *testing.T) {
	names := observe.Names()
	row := regexp.MustCompile("(?m)^\\| `(dewpoint_[a-z_]+)` \\| ([^|]*)\\|")
	documented := map[string]bool{}
	for _, found := range row.FindAllStringSubmatch(string(read(t, "../docs/metrics.md")), -1) {
		name := found[1]
		documented[name] = true
		var labels []string
		for label := range strings.SplitSeq(found[2], ",") {
			if label = strings.Trim(label, " `"); label != "" {
				labels = append(labels, label)
			}
		}
		if real, ok := names[name]; !ok {
			t.Errorf("%s is documented, and there is none", name)
		} else if !slices.Equal(real, labels) {
			t.Errorf("%s has the labels %q; documented are %q", name, real, labels)
		}
	}
	for name := range names {
		if !documented[name] {
			t.Errorf("%s is not documented", name)
		}
	}
}
