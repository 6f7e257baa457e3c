package proxy

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

func TestNoLimitAllocatesNothing(t *testing.T) {
	tenant := &Tenant{Tenant: engine.Tenant{Name: "a"}, gate: &gate{}}
	s := &Server{o: Options{Now: time.Now}}
	r := &request{accepted: accepted{arrival: arrival{server: s}, tenant: tenant}, body: &body{}}
	allocated := testing.AllocsPerRun(100, func() {
		if _, ok := r.admit(); !ok || r.pay() != nil {
			t.Fatal("refused")
		}
		r.settle(0, dialect.Answer{})((*Server).inBackground)
		r.tenant.gate.active.Add(-1)
	})
	if allocated > 0 {
		t.Errorf("%v allocations", allocated)
	}
}

// TestRefusedRequestsGiveTheirPlaceBackAtOnce: a request that a limit refuses gives its place back at once, before its body has arrived.
func TestRefusedRequestsGiveTheirPlaceBackAtOnce(t *testing.T) {
	for name, limits := range map[string]limit.Tenant{
		"requests_per_minute_exceeded": {Requests: 1}, "tokens_per_minute_exceeded": {Tokens: 1},
	} {
		tenant := &Tenant{Tenant: engine.Tenant{Name: "a"}, Limits: limits, gate: &gate{}}
		tenant.Limits.Concurrent = 2
		first, second := (&request{accepted: accepted{arrival: arrival{server: &Server{o: Options{Now: time.Now}}}, tenant: tenant}}), &request{}
		*second = *first
		if _, ok := first.admit(); !ok {
			t.Fatalf("%s: the first is refused", name)
		}
		tenant.tokens().Take(time.Now(), 1, 1)
		if e, ok := second.admit(); ok || tenant.gate.active.Load() != 1 || e.Code != name {
			t.Errorf("%s: served %t by limit %q, %d are under way", name, ok, e.Code, tenant.gate.active.Load())
		}
		first.leave()
		first.leave() // again: nothing happens
		if n := tenant.gate.active.Load(); n != 0 {
			t.Errorf("%s: then %d are under way", name, n)
		}
	}
}
