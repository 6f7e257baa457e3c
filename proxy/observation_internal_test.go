package proxy

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// seenServer is a server that is only looked at.
func seenServer(t *testing.T) *Server {
	t.Helper()
	tenant := &Tenant{Name: "a", Condenser: condense.Noop{}, Cooldown: &condense.Cooldown{}}
	s := &Server{o: Options{Metrics: NewMetrics(), Now: time.Now}}
	tenants := NewTenants(tenant)
	s.live.Store(&live{tenants: tenants, meters: s.o.Metrics.of(tenants)})
	return s
}

// observed takes note of a whole request.
func observed(s *Server, r *request, t *turn, usage *session.Usage) {
	r.seen = observation{}
	o := &r.seen
	o.begin(s)
	r.live, r.tenant = s.live.Load(), s.live.Load().tenants.tenants[0]
	o.accepted(r)
	o.bodyRead()
	o.asked(t.model)
	o.recognised(t)
	o.sending()
	o.answered(nil, nil)
	o.forwarded(session.Size{Events: 4, Tokens: 500})
	o.firstByte()
	o.firstByte()
	o.held(o.begun)
	o.used(usage)
	o.relayed(outcome{Status: 200})
}

// TestObservingIsFree holds that a request which is neither traced nor logged is observed without an allocation.
func TestObservingIsFree(t *testing.T) {
	s := seenServer(t)
	r := &request{}
	seen := &counts{before: session.Size{Events: 9, Tokens: 900}}
	turn := &turn{
		request: r, model: ModelInfo{Name: "gpt-4o", Price: Price{Input: 2, Cached: 1, Output: 8}},
		place:   session.Resolution{Source: session.SourcePrefix},
		counted: func() *counts { return seen },
	}
	usage := &session.Usage{Input: 450, Cached: 128, Output: 20}
	if n := testing.AllocsPerRun(200, func() { observed(s, r, turn, usage) }); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

func BenchmarkObserving(b *testing.B) {
	tenant := &Tenant{Name: "a", Condenser: condense.Noop{}}
	s := &Server{o: Options{Metrics: NewMetrics(), Now: time.Now}}
	s.live.Store(&live{tenants: NewTenants(tenant), meters: s.o.Metrics.of(NewTenants(tenant))})
	r := &request{}
	turn := &turn{
		request: r, model: ModelInfo{Name: "gpt-4o"}, place: session.Resolution{Source: session.SourcePrefix},
		counted: func() *counts { return &counts{} },
	}
	usage := &session.Usage{Input: 450, Cached: 128, Output: 20}
	b.ReportAllocs()
	for b.Loop() {
		observed(s, r, turn, usage)
	}
}
