package proxy

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
)

func TestNoLimitAllocatesNothing(t *testing.T) {
	tenant := &Tenant{Tenant: engine.Tenant{Name: "a"}, gate: &gate{}}
	s := &Server{o: Options{Now: time.Now}}
	r := &request{server: s, tenant: tenant, body: &body{}}
	allocated := testing.AllocsPerRun(100, func() {
		if _, ok := r.admit(); !ok || r.pay() != nil {
			t.Fatal("refused")
		}
		r.settleLater(0, dialect.Answer{})
		r.tenant.gate.busy.Add(-1)
	})
	if allocated > 0 {
		t.Errorf("%v allocations", allocated)
	}
}
