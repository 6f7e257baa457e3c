package charttest

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	core "k8s.io/api/core/v1"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
)

// metrics returns the label names of each of Dewpoint's metrics, by the metric's name. The name of a histogram is without _bucket, _sum and
// _count.
func metrics() map[string][]string { return observe.Names() }

// targetLabels returns the labels that Prometheus itself adds to each series, and those that Grafana's macros stand for.
func targetLabels() []string {
	return []string{"job", "instance", "pod", "namespace", "service", "endpoint", "container", "cluster", "node"}
}

// TestQueriesNameWhatExists: every query of the dashboard and of the alerts uses metrics and labels that exist.
func TestQueriesNameWhatExists(t *testing.T) {
	queries := append(dashboardQueries(t), alertQueries(t)...)
	if len(queries) < 2 {
		t.Fatalf("only %d queries were found", len(queries))
	}
	known := metrics()
	for _, query := range queries {
		for _, wrong := range checkQuery(query, known) {
			t.Errorf("%s, in: %s", wrong, query)
		}
	}
}

// TestQueriesParse: every query is valid PromQL.
func TestQueriesParse(t *testing.T) {
	for _, query := range append(dashboardQueries(t), alertQueries(t)...) {
		if _, err := parse(query); err != nil {
			t.Errorf("%v, in: %s", err, query)
		}
	}
}

func parse(query string) (parser.Expr, error) {
	return parser.NewParser(parser.Options{}).ParseExpr(macros.Replace(query))
}

// macros stand for durations in Grafana.
var macros = strings.NewReplacer("$__rate_interval", "5m", "$__interval", "1m", "$__range", "1h", "${__range_s}", "3600", "$__range_s", "3600")

// checkQuery checks that the metrics in a query exist, and the labels that it filters, groups and joins by. A label that it groups by must
// belong to some metric in the query. It returns the problems.
func checkQuery(query string, known map[string][]string) (wrong []string) {
	expr, err := parse(query)
	if err != nil {
		return []string{err.Error()}
	}
	inside := append(targetLabels(), "le")
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			labels, found := checkSelector(selector, known)
			inside, wrong = append(inside, labels...), append(wrong, found...)
		}
		return nil
	})
	for _, label := range grouped(expr) {
		if !slices.Contains(inside, label) {
			wrong = append(wrong, label+" is no label of what is read")
		}
	}
	return wrong
}

// checkSelector checks a selector. It returns the labels of the selected metric, and the problems.
func checkSelector(s *parser.VectorSelector, known map[string][]string) (labels, wrong []string) {
	if foreign(s.Name) {
		return nil, nil
	}
	labels, ok := find(s.Name, known)
	if !ok {
		return nil, []string{fmt.Sprintf("no metric is called %q", s.Name)}
	}
	allowed := slices.Concat(labels, targetLabels(), []string{model.MetricNameLabel, "le"})
	for _, matcher := range s.LabelMatchers {
		if !slices.Contains(allowed, matcher.Name) {
			wrong = append(wrong, fmt.Sprintf("%s has no label %s", s.Name, matcher.Name))
		}
	}
	return labels, wrong
}

// find returns the labels of a metric, or of the histogram that a name with _bucket, _sum or _count belongs to.
func find(name string, known map[string][]string) ([]string, bool) {
	if labels, ok := known[name]; ok {
		return labels, true
	}
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		whole, cut := strings.CutSuffix(name, part)
		if labels, ok := known[whole]; cut && ok && !strings.HasSuffix(whole, "_total") {
			return labels, true
		}
	}
	return nil, false
}

// foreign reports whether a metric is not Dewpoint's, but comes from Prometheus itself, the Go runtime or Kubernetes.
func foreign(name string) bool {
	for _, prefix := range []string{"go_", "process_", "kube_", "kubelet_", "container_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == "up" || name == "ALERTS"
}

// grouped returns the labels that an expression groups and joins by.
func grouped(expr parser.Expr) []string {
	var found []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.AggregateExpr:
			found = append(found, n.Grouping...)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				found = slices.Concat(found, n.VectorMatching.MatchingLabels, n.VectorMatching.Include)
			}
		}
		return nil
	})
	return found
}

// TestQueriesAreLookedAt: checkQuery finds a metric, a label or a part of a histogram that does not exist.
func TestQueriesAreLookedAt(t *testing.T) {
	known := map[string][]string{"a_total": {"tenant"}, "b_seconds": {"tenant"}, "c": nil}
	for query, good := range map[string]bool{
		`sum by (tenant) (rate(a_total{tenant="x"}[5m]))`:                                    true,
		`histogram_quantile(0.9, sum by (le, tenant) (rate(b_seconds_bucket{pod="p"}[5m])))`: true,
		`a_total / on (tenant) group_left b_seconds_count`:                                   true,
		`up == 0 or c > 1`:         true,
		`kube_pod_info{node="n"}`:  true,
		`sum(d_total)`:             false,
		`a_total_bucket`:           false,
		`a_total{status="5xx"}`:    false,
		`sum by (model) (a_total)`: false,
		`c / ignoring (status) c`:  false,
		`sum without (reason) (c)`: false,
		`sum(`:                     false,
		`{job="dewpoint"}`:         false,
	} {
		if wrong := checkQuery(query, known); (len(wrong) == 0) != good {
			t.Errorf("%s: found wrong: %v", query, wrong)
		}
	}
}

// dashboardQueries returns every query of the dashboard, including those of its variables.
func dashboardQueries(t *testing.T) []string {
	t.Helper()
	var board any
	if err := json.Unmarshal(chartFile(t, "files/dashboard.json"), &board); err != nil {
		t.Fatal(err)
	}
	var found []string
	var look func(any)
	look = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, below := range v {
				if text, ok := below.(string); ok && (key == "expr" || key == "query" || key == "definition") {
					found = append(found, queryIn(key, text)...)
				}
				look(below)
			}
		case []any:
			for _, below := range v {
				look(below)
			}
		}
	}
	look(board)
	slices.Sort(found)
	return slices.Compact(found)
}

var labelValues = regexp.MustCompile(`^label_values\((.*),\s*([a-zA-Z_]+)\)$`)

// queryIn returns the PromQL in a member of the dashboard, if any: an expression, or an equivalent of a variable's label_values query.
func queryIn(key, text string) []string {
	if key == "expr" {
		return []string{text}
	}
	if match := labelValues.FindStringSubmatch(text); match != nil {
		return []string{"sum by (" + match[2] + ") (" + match[1] + ")"}
	}
	return nil
}

func alertQueries(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, group := range alerts(t).Groups {
		for _, rule := range group.Rules {
			found = append(found, rule.Expr)
		}
	}
	return found
}

// alerts parses the alerting rules as Prometheus does: their expressions, durations, and templates in labels and annotations.
func alerts(t *testing.T) *rulefmt.RuleGroups {
	t.Helper()
	groups, errs := rulefmt.Parse(chartFile(t, "files/alerts.yaml"), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil || len(groups.Groups) == 0 {
		t.Fatal("no alerts")
	}
	return groups
}

func TestAlertsSayWhatToDo(t *testing.T) {
	seen := map[string]bool{}
	for _, group := range alerts(t).Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			if seen[rule.Alert] {
				t.Errorf("%s is there twice", rule.Alert)
			}
			seen[rule.Alert] = true
			if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["runbook_url"] == "" {
				t.Errorf("%s lacks a severity, a summary or a runbook_url", rule.Alert)
			}
		}
	}
}

// TestFilesArriveAsTheyAre: Helm does not evaluate the braces in these files, which are for Prometheus and Grafana.
func TestFilesArriveAsTheyAre(t *testing.T) {
	r := mustRender(t, sets(t)["production"])
	board := one[*core.ConfigMap](t, r, name+"-dashboard").Data["dewpoint.json"]
	if want := string(chartFile(t, "files/dashboard.json")); strings.TrimSpace(board) != strings.TrimSpace(want) {
		t.Error("the dashboard is another one")
	}
	rules := one[*monitoring.PrometheusRule](t, r, name).Spec
	for i, group := range alerts(t).Groups {
		for j, rule := range group.Rules {
			got := rules.Groups[i].Rules[j]
			if got.Alert != rule.Alert || got.Expr.String() != rule.Expr || got.Annotations["summary"] != rule.Annotations["summary"] {
				t.Errorf("%s arrives as %+v", rule.Alert, got)
			}
			if url := got.Annotations["runbook_url"]; rule.Alert != "" && !strings.HasPrefix(url, "https://") {
				t.Errorf("%ssends the reader to %q", rule.Alert, url)
			}
		}
	}
}
