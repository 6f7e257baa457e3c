package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// pending reports whether a condensation of a thread is pending.
func (r *rig) pending(p place) bool {
	r.t.Helper()
	var thread threadInfo
	r.get(p.url(""), &thread)
	return thread.Pending
}

func (r *rig) condense(p place) {
	r.t.Helper()
	if a := r.call(http.MethodPost, p.url("/condense")); a.StatusCode != http.StatusAccepted {
		r.t.Fatalf("condense: %d %s", a.StatusCode, a.body)
	}
}

// TestCondenseNow checks that a requested condensation is made once, by the thread's next request, with each store, and even if the service
// restarts in between.
func TestCondenseNow(t *testing.T) {
	for name, change := range stores() {
		t.Run(name, func(t *testing.T) {
			r := start(t, change(t))
			conversation := turns("ships", 9)
			p := r.grow(conversation[:6], 2)
			if p.condensed != "" || r.pending(p) {
				t.Fatalf("condensed before anybody asked: %+v", p)
			}
			r.condense(p)
			r.condense(p) // a second request has no further effect
			if !r.pending(p) {
				t.Error("nothing is pending")
			}
			var events struct{ Events []struct{ Kind string } }
			r.get(p.url("/events"), &events)
			if last := events.Events[len(events.Events)-1].Kind; last != "condensation_request" || len(events.Events) != 7 {
				t.Errorf("%d events, the last is a %s", len(events.Events), last)
			}
			r.restart()
			next := r.ask(conversation[:8])
			if next.thread != p.thread || !strings.HasPrefix(next.condensed, "request; ") || r.pending(p) {
				t.Errorf("the next request: %+v, pending %v", next, r.pending(p))
			}
			if got := r.received(); len(got) >= 8 || !strings.Contains(strings.Join(got, ""), "dewpoint_record") {
				t.Errorf("upstream got %d messages", len(got))
			}
			r.compare(next)
			calls := r.up.SummariserCalls()
			if after := r.ask(conversation); after.condensed != "" || r.up.SummariserCalls() != calls {
				t.Errorf("condensed again: %+v", after)
			}
		})
	}
}

// stores returns a configuration for each store.
func stores() map[string]func(*testing.T) func(*config.Config) {
	return map[string]func(*testing.T) func(*config.Config){
		"embedded": func(*testing.T) func(*config.Config) { return nil },
		"redis": func(t *testing.T) func(*config.Config) {
			addr := sessiontest.StartRedis(t).Addr
			return func(c *config.Config) {
				c.Store.Type, c.Store.Redis.Addrs, c.Store.MaxSize = config.StoreRedis, []string{addr}, 0
			}
		},
	}
}

// TestCondenseStaysPendingUntilPossible checks that a request stays pending while nothing may be forgotten.
func TestCondenseStaysPendingUntilPossible(t *testing.T) {
	r := start(t, nil)
	conversation := turns("ships", 9)
	p := r.ask(conversation[:2])
	r.condense(p)
	for n := 4; ; n += 2 {
		if n > len(conversation) {
			t.Fatal("never condensed")
		}
		next := r.ask(conversation[:n])
		if next.condensed != "" {
			break
		}
		if !r.pending(p) {
			t.Fatalf("after %d messages nothing was condensed, and nothing is pending", n)
		}
	}
	if r.pending(p) {
		t.Error("still pending after a condensation")
	}
}

func TestCondenseRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*config.Config)
		code   string
	}{
		"masking": {func(c *config.Config) { c.Condenser = catalogue.Default(catalogue.TypeObservationMasking) }, "condenser_forgets_nothing"},
		"pipeline": {func(c *config.Config) {
			c.Condenser = config.Condenser{Type: catalogue.TypePipeline, Condensers: []config.Condenser{catalogue.Default(catalogue.TypeToolOutputTrim)}}
		}, "condenser_forgets_nothing"},
		"observing": {func(c *config.Config) { c.Tenants = []config.Tenant{observing()} }, "tenant_observes"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, c.change)
			p := r.ask(turns("ships", 1))
			r.call(http.MethodPost, p.url("/condense")).fails(t, http.StatusConflict, c.code)
			if r.pending(p) {
				t.Error("it is pending all the same")
			}
		})
	}
}

func TestCondenseOfATenantThatIsGone(t *testing.T) {
	r := start(t, func(c *config.Config) {
		c.Tenants = []config.Tenant{{Name: "old", APIKeys: []config.APIKey{{Env: "KEY", Value: "client-key"}}}}
	})
	p := r.grow(turns("ships", 13), 2)
	now := *r.cfg
	now.Tenants = []config.Tenant{observing()}
	must(t, r.app.Reload(&now))
	r.call(http.MethodPost, p.url("/condense")).fails(t, http.StatusConflict, "tenant_unknown")
	r.get(p.url("/view"), new(any))
	var list struct{ Tenants []struct{ Name string } }
	r.get("/api/v1/tenants", &list)
	if len(list.Tenants) != 1 || list.Tenants[0].Name != "watched" {
		t.Errorf("tenants %+v", list)
	}
}
