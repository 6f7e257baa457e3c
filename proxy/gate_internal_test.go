package proxy

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
)

func TestNoLimitAllocatesNothing(t *testing.T) {
	tenants := NewTenants(&Tenant{Tenant: engine.Tenant{Name: "a"}})
	tenants.adopt(nil)
	s := &Server{o: Options{Now: time.Now, Observer: unobserved{}}}
	r := &request{server: s, tenant: tenants.tenants[0], body: &body{}}
	allocated := testing.AllocsPerRun(100, func() {
		if r.admit() != nil || r.charge() != nil {
			t.Fatal("refused")
		}
		r.settle(0, dialect.Answer{})
		r.tenant.gate.leave()
	})
	if allocated > 0 {
		t.Errorf("%v allocations", allocated)
	}
}
