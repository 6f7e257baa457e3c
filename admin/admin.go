// Package admin is the HTTP API for operators: what sessions there are, what of them goes upstream and why, what that
// saves, and how to delete one. It is served on the admin port, versioned, and described by the OpenAPI document that is
// part of it.
//
// It reads the store and knows nothing of requests under way: how a history is forwarded, it asks the engine.
package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Options are what the API is made of. Store, Archive, Forwarder, Settings and Metrics are needed.
type Options struct {
	Token     string   // empty: none is asked for, and only who addresses this machine by a loopback name is let in
	Hosts     []string // more names by which the API may be addressed without a token
	Store     session.Store
	Archive   session.Archive
	Forwarder Forwarder
	Settings  Settings
	Metrics   http.Handler
	Health    http.Handler // of /livez, /readyz, /startupz and /healthz, without a token; nil: none
	MostBytes int64        // of messages that are read for one answer; 0: 128 MiB
	Now       func() time.Time
	Failed    func(error)  // is told of errors whose cause a client is not told; nil: they are dropped
	Changed   func(Change) // is told of what was changed; nil: it is not reported
}

// Change is a request that has changed something.
type Change struct{ Method, Path, Query, From string }

// Forwarder shows a logged history as the proxy forwards it, tells where a request belongs, and opens the records that clients carry: an
// engine.Engine.
type Forwarder interface {
	Show(engine.Past) (engine.Shown, error)
	Explain(context.Context, engine.Question) (engine.Explanation, error)
	Unseal(ctx context.Context, tenant, sealed string) (text string, err error)
	// Experiment is what the sessions of a tenant came to where that share of them is held out.
	Experiment(ctx context.Context, tenant string, share float64) (session.Experiment, error)
}

// Settings is the configuration in force.
type Settings interface {
	// Effective is the configuration as JSON, defaults included, secrets redacted.
	Effective() ([]byte, error)
	Tenants() []Tenant
	// Levers are those that are set.
	Levers() []Lever
	// SetLever sets one, or takes it back if it has no mode. All replicas follow.
	SetLever(ctx context.Context, l Lever) error
}

// Tenant is what the API tells of a tenant.
type Tenant struct {
	Name        string       `json:"name"`
	Anonymous   bool         `json:"anonymous"` // any key passes
	Keys        int          `json:"keys"`
	Upstream    string       `json:"upstream"`
	UpstreamKey bool         `json:"upstream_key"` // the proxy sends one of its own
	Condenser   string       `json:"condenser"`
	Condenses   bool         `json:"condenses"` // its condenser can forget; some only make other views
	Observe     bool         `json:"observe"`
	Notify      bool         `json:"notify"`
	LogContent  bool         `json:"log_content"`             // what its clients say goes into the log
	Holdout     float64      `json:"holdout"`                 // share of its sessions that are left alone; 0: none
	KeepWarmUSD float64      `json:"keep_warm_usd,omitempty"` // what may be spent in a day to keep its prompts in providers' caches; 0: none are
	Limits      limit.Tenant `json:"limits"`
	Condensing  Condensing   `json:"condensing"` // what is in force, which the levers may have made another one than is configured
}

// api answers requests.
type api struct {
	o     Options
	large chan struct{} // a place for who reads messages
}

// New makes the handler of the admin port.
func New(o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	if o.Changed == nil {
		o.Changed = func(Change) {}
	}
	if o.MostBytes == 0 {
		o.MostBytes = usualBytes
	}
	a := &api{o: o, large: make(chan struct{}, 1)}
	guarded := http.NewServeMux()
	a.mount(guarded)
	guarded.Handle("GET /metrics", o.Metrics)
	guarded.HandleFunc("/", unknownPath)

	mux := http.NewServeMux()
	mux.Handle("/", newGuard(o.Token, o.Hosts).wrap(guarded))
	if o.Health != nil {
		for _, path := range [...]string{"/livez", "/readyz", "/startupz", "/healthz"} {
			mux.Handle(path, o.Health)
		}
	}
	return mux
}
