// Package admin is the HTTP API for operators. It lists sessions, shows what each of them sends upstream and why, reports
// what condensing saves, and deletes sessions. The API is served on the admin port, is versioned, and is described by the
// embedded OpenAPI document.
//
// The package reads the store and knows nothing of requests in progress. It asks the engine how a history is forwarded.
package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/lru"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Options configure the API and its pages. All but Token, Tokens, StartToken, Hosts, Version, Audit and Troubles are required.
type Options struct {
	Token   string   // of an operator
	Tokens  []Token  // further tokens. If there are none at all, only requests addressed to a loopback name are accepted
	Hosts   []string // further names that are accepted without a token
	Version string

	// StartToken is the token of the person who started the process. It counts only if no other token is configured: requests without it are
	// then shown figures, but no content. If it is empty as well, everyone is shown content.
	StartToken string

	Audit     Audit // nil: what people read and change is reported to OnChange only
	Store     session.Store
	Archive   session.Archive
	Forwarder Forwarder
	Journal   Journal
	Settings  Settings
	Metrics   http.Handler
	Health    http.Handler                    // serves /livez, /readyz, /startupz and /healthz without a token
	Troubles  func(context.Context) []Trouble // what keeps the process from being healthy; nil: nothing is known
	MaxBytes  int64                           // maximum size of the messages that are read for one response
	OnError   func(error)                     // receives errors whose cause is not sent to the client
	OnChange  func(Change)                    // called after each successful change
}

// Trouble is a check of /readyz that has failed. Everyone who may see the overview sees it, since /readyz needs no token either.
type Trouble struct{ Check, Detail string }

// Change is a request that changed something. Query is without session keys.
type Change struct{ Method, Path, Query, From, Who string }

// Forwarder shows a logged history as the proxy forwards it, explains which thread a request belongs to, and opens the
// records that clients carry. It is implemented by engine.Engine.
type Forwarder interface {
	Show(engine.Past) (engine.Shown, error)
	// Read decodes a logged message; protocol is that of its thread.
	Read(protocol string, raw []byte) (session.Content, error)
	Explain(context.Context, engine.Question) (engine.Explanation, error)
	Unseal(ctx context.Context, tenant, sealed string) (text string, err error)
	// Experiment returns the sums over a tenant's sessions, of which a share is held out.
	Experiment(ctx context.Context, tenant string, h session.Holdout) (session.Experiment, error)
	// Pending returns the condensation that was prepared for a thread; Correct replaces its record and what is pinned to it.
	Pending(ctx context.Context, thread session.ThreadID) (engine.Pending, error)
	Correct(ctx context.Context, thread session.ThreadID, version, text, pinned string) (engine.Pending, error)
	// Spending returns what is spent of a budget in the period that contains now.
	Spending(ctx context.Context, b engine.Budget, now time.Time) ([]engine.Spending, error)
}

// Settings gives access to the configuration in force.
type Settings interface {
	// Effective returns the configuration as JSON, with defaults filled in and secrets redacted.
	Effective() ([]byte, error)
	Tenants() []Tenant
	// Overrides returns the overrides that are set.
	Overrides() []Override
	// SetOverride sets an override, or removes those that were set if it has no mode. All replicas apply the change.
	SetOverride(ctx context.Context, l Override) error
}

// Tenant describes a tenant.
type Tenant struct {
	Name        string `json:"name"`
	Anonymous   bool   `json:"anonymous"` // any API key is accepted
	Keys        int    `json:"keys"`
	Upstream    string `json:"upstream"`
	UpstreamKey bool   `json:"upstream_key"` // the proxy sends a key of its own upstream

	Upstreams map[string]string `json:"upstreams"` // by provider: where requests go that do not go to Upstream

	Condenser  string       `json:"condenser"`
	Condenses  bool         `json:"condenses"` // the condenser can forget; some only change views
	Observe    bool         `json:"observe"`
	Notify     bool         `json:"notify"`
	LogContent bool         `json:"log_content"` // requests and answers are logged with their content
	Holdout    float64      `json:"holdout"`     // share of sessions that are not condensed, or by another condenser; 0: none
	Limits     limit.Tenant `json:"limits"`

	// The condenser of sessions that are held out, empty: none, and what identifies its settings.
	HoldoutCondenser string `json:"holdout_condenser,omitempty"`
	HoldoutVariant   string `json:"-"`

	Condensing Condensing `json:"condensing"` // the mode in force, which an override may have changed
}

// api serves the routes.
type api struct {
	o       Options
	reading chan struct{} // a semaphore: at most one request reads messages
	doors   *doors
	readers lru.Cache[string, struct{}] // who has read which session lately
}

// maxReaders is how many readers of sessions are remembered, so that each is noted once.
const maxReaders = 10_000

// New returns the handler of the admin port.
func New(o Options) http.Handler {
	a := &api{o: o, reading: make(chan struct{}, 1), doors: newDoors(&o), readers: lru.New[string, struct{}](maxReaders)}
	guarded := http.NewServeMux()
	a.mount(guarded)
	guarded.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if err := totals.permit(who(r)); err != nil {
			a.fail(w, err)
			return
		}
		o.Metrics.ServeHTTP(w, r)
	})
	guarded.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, fault(http.StatusNotFound, "not_found", "There is nothing at this path. GET %s/openapi.yaml describes the API.", base))
	})

	mux := http.NewServeMux()
	mux.Handle("/", a.guard(guarded))
	newPages(a).mount(mux)
	for _, path := range [...]string{"/livez", "/readyz", "/startupz", "/healthz"} {
		mux.Handle(path, o.Health)
	}
	return mux
}

func (a *api) tenants(r *http.Request, _ *query) (any, error) {
	return map[string][]Tenant{"tenants": a.tenantsOf(who(r))}, nil
}

// tenantsOf returns the tenants that a token opens.
func (a *api) tenantsOf(i *identity) []Tenant {
	return slices.DeleteFunc(slices.Clone(a.o.Settings.Tenants()), func(t Tenant) bool { return !i.sees(t.Name) })
}

func (a *api) config(*http.Request, *query) (any, error) {
	text, err := a.o.Settings.Effective()
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	return json.RawMessage(text), nil
}
