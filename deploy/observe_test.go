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

	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
)

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
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

// TestAlertsAreWhole checks that each alert has a severity, a summary, a description and a runbook section that exists.
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
			t.Errorf("%q is incomplete, or a duplicate", r.Alert)
		}
		named[r.Alert] = true
		file, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "#")
		if file != "docs/operations.md" || !anchors[anchor] {
			t.Errorf("%s: %s does not exist", r.Alert, r.Annotations["runbook_url"])
		}
	}
	if len(named) < 12 {
		t.Errorf("only %d alerts", len(named))
	}
}

// TestAlertsAreTested checks that promtool's unit tests have cases in which each alert fires and does not.
func TestAlertsAreTested(t *testing.T) {
	tests := string(read(t, "charttest/testdata/alerts.yaml"))
	for _, r := range rules(t) {
		fires, quiet := `{labels: '{alertname="`+r.Alert+`"}', value: 1}`, "alertname: "+r.Alert+", exp_alerts: []"
		if !strings.Contains(tests, fires) || !strings.Contains(tests, quiet) {
			t.Errorf("%s is not tested both to fire and to be quiet", r.Alert)
		}
	}
}

// TestOperationsExplainRowsAndAlerts checks that docs/operations.md explains each row of the dashboard and each alert.
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

// TestMetricsAreDocumented checks that docs/metrics.md has all metrics with their labels, and no others.
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
