package proxy_test

import (
	"math"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// TestEstimateWhileObserving plays one conversation twice, condensed and only observed. The estimated saving is the actual one, exactly so
// if nothing depends on the length of a summary.
func TestEstimateWhileObserving(t *testing.T) {
	const saved, estimated = `dewpoint_saved_tokens_total{model="gpt-4o",tenant="default"}`, `dewpoint_observed_saved_tokens_total{model="gpt-4o",tenant="default"}`
	const made = `dewpoint_condensations_total{condenser="amortized_forgetting",outcome="condensed",reason="events",tenant="default"}`
	const supposed = `dewpoint_condensations_total{condenser="amortized_forgetting",outcome="observed",reason="events",tenant="default"}`
	play := func(condenser condense.Condenser, observes bool) *rig {
		r := condensing(t, setup{models: priced, tenants: one(func(tenant *proxy.Tenant) { tenant.Condenser, tenant.Observe = condenser, observes })})
		for n := 9; n <= 41; n += 2 {
			r.ask(messages(turns("ships", n)...))
		}
		r.wait(func() bool { return r.metric(`dewpoint_request_seconds_count{tenant="default"}`) == 17 })
		return r
	}
	settings := condense.Settings{MaxSize: 10, KeepFirst: 1, MinimumProgress: 0.1}
	real, only := play(condense.AmortizedForgetting{Settings: settings}, false), play(condense.AmortizedForgetting{Settings: settings}, true)
	if want, got := real.metric(saved), only.metric(estimated); want <= 0 || math.Abs(got-want) > want/100 {
		t.Errorf("%v tokens would have been saved by the estimate, %v were", got, want)
	}
	if want, got := real.metric(made), only.metric(supposed); want < 3 || got != want {
		t.Errorf("%v condensations by the estimate, %v were made", got, want)
	}
	money := func(kind string) float64 {
		return only.metric(`dewpoint_observed_saved_usd_total{kind="` + kind + `",model="gpt-4o",tenant="default"}`)
	}
	if money("saved") <= 0 || money("cache") != 0 { // so much is forgotten that even the step that does it costs less
		t.Errorf("%v dollars are saved, and %v spent", money("saved"), money("cache"))
	}
	real, only = play(llm(0, "", patience), false), play(llm(0, "", patience), true)
	if want, got := real.metric(saved), only.metric(estimated); math.Abs(got-want) > want/5 { // how long a summary will be is a guess
		t.Errorf("with summaries %v tokens would have been saved by the estimate, %v were", got, want)
	}
	if money("saved") <= 0 || money("cache") <= 0 {
		t.Errorf("with summaries %v dollars are saved, and %v spent", money("saved"), money("cache"))
	}
	if real.metric(estimated) != 0 {
		t.Error("an estimate where nothing is observed")
	}
}

// TestSwitchedOffTenantIsForwardedWhole: everything is forwarded whole, whatever the client asks for, even if it was condensed before.
func TestSwitchedOffTenantIsForwardedWhole(t *testing.T) {
	r := condensing(t, setup{})
	r.wantCondensed(messages(turns("ships", 11)...))
	live := r.live
	live.Tenants = one(func(tenant *proxy.Tenant) { tenant.Condenser, tenant.Off = llm(0, "", patience), true })(r.live.Tenants.Bases()[0])
	r.server.Swap(live)
	r.wantUnchanged(messages(turns("ships", 13)...))
	r.wantUnchanged(messages(turns("planes", 13)...), "X-Dewpoint-Condense", "now")
	r.wait(func() bool { return r.metric(`dewpoint_over_limit_whole_total{tenant="default",why="off"}`) == 1 }) // what is condensed already is below
	r.server.Swap(r.live)
	r.wantCondensed(messages(turns("ships", 27)...))
}
