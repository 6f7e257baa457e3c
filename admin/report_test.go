package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
)

func TestSavingsAreReportedByWhatIsAskedFor(t *testing.T) {
	r := start(t, nil)
	p := r.grow(turns("gardening", 15), 2, "User-Agent", "claude-cli/2.1.104")
	var of requestsShown
	r.get("/api/v1/sessions/"+p.session+"/requests", &of)
	type line struct {
		Tenant, Model, Agent    string
		Requests, Steps, Failed int
		Own                     struct{ Calls int } `json:"own_calls"`
		Charged                 float64             `json:"charged_usd"`
	}
	var report struct {
		Rows    []line
		Total   line
		Budgets []struct{ Tenant string }
	}
	r.get("/api/v1/savings?since=1d&by=tenant,model,agent", &report)
	charged := 0.0
	for _, q := range of.Requests {
		charged += q.USD.Charged
	}
	if report.Total.Requests != len(of.Requests) || report.Total.Own.Calls == 0 || report.Total.Charged-charged > 1e-9 || charged-report.Total.Charged > 1e-9 {
		t.Errorf("%d requests cost %f, and the total is %+v", len(of.Requests), charged, report.Total)
	}
	if len(report.Rows) != 2 || report.Rows[0].Model != summariser || report.Rows[1] != (line{
		Tenant: "default", Model: agentModel, Agent: "claude-cli", Requests: len(of.Requests), Steps: len(of.Requests), Charged: report.Total.Charged,
	}) {
		t.Errorf("rows %+v", report.Rows)
	}
	csv := r.call(http.MethodGet, "/api/v1/savings?by=day&format=csv")
	if got := csv.Header.Get("Content-Type"); got != "text/csv; charset=utf-8" || !strings.HasPrefix(string(csv.body), "day,requests,") || strings.Count(string(csv.body), "\n") != 2 {
		t.Errorf("%s: %s", got, csv.body)
	}
	r.get("/api/v1/savings?since=2020-01-01&until=2020-02-01", &report)
	if report.Total.Requests != 0 {
		t.Errorf("in the past there were %+v", report.Total)
	}
	for _, query := range []string{"by=user", "since=yesterday", "until=x", "format=xml"} {
		r.call(http.MethodGet, "/api/v1/savings?"+query).fails(t, http.StatusBadRequest, "invalid_parameter")
	}
}

// TestSavingsSayHowHoldoutsStand: the report has the comparison of each tenant that holds sessions out, and of no other.
func TestSavingsSayHowHoldoutsStand(t *testing.T) {
	for _, share := range []float64{0, 0.25} {
		r := start(t, func(c *config.Config) { c.Holdout.Share = share })
		var report struct {
			Holdouts []struct{ Tenant, Verdict string }
		}
		r.get("/api/v1/savings", &report)
		if share == 0 && len(report.Holdouts) > 0 || share > 0 && (len(report.Holdouts) != 1 || report.Holdouts[0].Tenant != "default" || report.Holdouts[0].Verdict != "not known yet") {
			t.Errorf("with a share of %g: %+v", share, report.Holdouts)
		}
	}
}
