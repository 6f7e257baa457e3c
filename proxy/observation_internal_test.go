package proxy

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// seenServer is a server that is only looked at.
func seenServer(t *testing.T) *Server {
	t.Helper()
	tenant := &Tenant{Tenant: engine.Tenant{Name: "a", Condenser: condense.Noop{}, Cooldown: &condense.Cooldown{}}}
	s := &Server{o: Options{Metrics: NewMetrics(), Now: time.Now}}
	tenants := NewTenants(tenant)
	s.live.Store(&live{tenants: tenants, meters: s.o.Metrics.of(tenants)})
	return s
}

// observed takes note of a whole request.
func observed(s *Server, r *request, t *engine.Turn, usage *session.Usage) {
	r.seen = observation{}
	o := &r.seen
	o.begin(s)
	r.live, r.tenant = s.live.Load(), s.live.Load().tenants.tenants[0]
	o.accepted(r)
	o.bodyRead()
	o.asked(r.model)
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

// begunTurn is the turn of a short history.
func begunTurn(t testing.TB) *engine.Turn {
	t.Helper()
	store, err := boltstore.Open(boltstore.Options{Path: filepath.Join(t.TempDir(), "store.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	e, err := engine.New(engine.Options{Sessions: openSessions{store}, Tokens: bytesOf{}})
	if err != nil {
		t.Fatal(err)
	}
	b := &body{bytes: []byte(`{"model":"gpt-4o","messages":[{"role":"user","content":"How deep is the sea?"}]}`)}
	completions := chat.New(chat.Options{})
	split, err := completions.Split(b.bytes)
	if err != nil {
		t.Fatal(err)
	}
	turn, err := e.Begin(t.Context(), engine.Input{
		Settings: e.Swap(engine.Settings{}), Tenant: &engine.Tenant{Name: "a", Condenser: condense.Noop{}}, Dialect: completions,
		Header: func(string) string { return "" }, Split: split, Body: b,
	})
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// openSessions is a store with a registry.
type openSessions struct{ store session.Store }

func (s openSessions) Registry(context.Context) (*session.Registry, session.Store, session.Secret, error) {
	secret := session.Secret("a secret of thirty-two bytes, so")
	registry, err := session.NewRegistry(session.RegistryOptions{Store: s.store, Secret: secret})
	return registry, s.store, secret, err
}

// bytesOf counts a token a byte.
type bytesOf struct{}

func (bytesOf) Counter(string) engine.Counter { return bytesOf{} }
func (bytesOf) Observe(string, int, int)      {}
func (bytesOf) Adjust(_ string, n int) int    { return n }
func (bytesOf) Encoding() string              { return "bytes" }
func (bytesOf) Text(s string) int             { return len(s) }
func (bytesOf) Tools(raw []byte) int          { return len(raw) }
func (bytesOf) Message(c session.Content) int { return len(c.Text) }

// TestObservingIsFree holds that a request which is neither traced nor logged is observed without an allocation.
func TestObservingIsFree(t *testing.T) {
	s := seenServer(t)
	r := &request{model: ModelInfo{Model: engine.Model{Name: "gpt-4o"}, Price: Price{Input: 2, Cached: 1, Output: 8}}}
	turn := begunTurn(t)
	usage := &session.Usage{Input: 450, Cached: 128, Output: 20}
	if n := testing.AllocsPerRun(200, func() { observed(s, r, turn, usage) }); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

func BenchmarkObserving(b *testing.B) {
	tenant := &Tenant{Tenant: engine.Tenant{Name: "a", Condenser: condense.Noop{}}}
	s := &Server{o: Options{Metrics: NewMetrics(), Now: time.Now}}
	s.live.Store(&live{tenants: NewTenants(tenant), meters: s.o.Metrics.of(NewTenants(tenant))})
	r := &request{model: ModelInfo{Model: engine.Model{Name: "gpt-4o"}}}
	turn := begunTurn(b)
	usage := &session.Usage{Input: 450, Cached: 128, Output: 20}
	b.ReportAllocs()
	for b.Loop() {
		observed(s, r, turn, usage)
	}
}
