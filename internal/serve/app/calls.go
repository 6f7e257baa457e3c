package app

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/knowledge"
	"github.com/dewpoint-proxy/dewpoint/internal/known/provider"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/dial"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/findings"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/records"
)

// calls is shared by the tenants: it makes the proxy's own calls, and keeps their state across reloads.
type calls struct {
	transport http.RoundTripper                         // for the operator's addresses; see transportOf
	mark      func(http.RoundTripper) http.RoundTripper // adds the mark by which a loop is recognised
	own       dial.Listeners                            // the process's own ports, which no call may reach
	confined  confinements
	windows   atomic.Pointer[map[string]http.RoundTripper] // by tenant, see windowTransport
	metrics   *observe.Metrics                             // nil: calls are not measured
	spans     *observe.Spans                               // nil: calls are not traced
	spent     sync.Map                                     // *buckets by tenant name
	knowledge knowledgeFolders                             // added texts
	memory    *findings.Courier                            // delivers findings; nil: they are not delivered
	draw      limit.Draw                                   // takes from limits that replicas share; nil: none are shared
	health    *summariser.Health                           // health of the called models
	lacks     *summariser.Lacks                            // features that the models' servers do not support
}

func newCalls(transport http.RoundTripper, log *zap.Logger) *calls {
	return &calls{
		transport: transport, mark: unmarked, health: summariser.NewHealth(time.Now), lacks: summariser.NewLacks(),
		knowledge: knowledgeFolders{log: log, byPath: map[string]*knowledge.Folder{}},
	}
}

// unmarked adds no mark, for calls of a process that does not serve.
func unmarked(t http.RoundTripper) http.RoundTripper { return t }

// caller returns a caller of a model. timeout bounds how long it may stay silent; 0: that of the model's settings.
func (c *calls) caller(transport http.RoundTripper, timeout time.Duration, llm config.LLM) summariser.Caller {
	s := summariser.Caller{
		Client: client(transport), Timeout: cmp.Or(timeout, llm.Timeout), Effort: llm.ReasoningEffort, Lacks: c.lacks,
	}
	if llm.Temperature != nil {
		s.Temperature = new(float32(*llm.Temperature))
	}
	return s
}

func client(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: observe.Propagator{RoundTripper: transport}}
}

// drawFor returns how a tenant draws from limits that it shares with other replicas, or nil if its limits are not shared.
func (c *calls) drawFor(l limit.Tenant) limit.Draw {
	if !l.Shared {
		return nil
	}
	return c.draw
}

// limitedSummariser enforces a tenant's limits on summaries and its budgets. It uses the operator's keys only for trusted clients.
type limitedSummariser struct {
	condense.Summariser
	keys          []config.Secret // the operator's
	named         string          // the address that the operator names for it, which needs no key if none is set; empty: that of the client's requests
	limits        limit.Tenant
	calls, tokens limit.Share
}

// buckets holds what a tenant has spent on summaries. It is kept across reloads.
type buckets struct{ calls, tokens limit.Bucket }

// limited applies the tenant's limits to a summariser. keys are the operator's keys that may pay for its calls.
func (b builder) limited(s condense.Summariser, keys ...config.Secret) limitedSummariser {
	known, _ := b.out.spent.LoadOrStore(b.tenant, &buckets{})
	own, draw := known.(*buckets), b.out.drawFor(b.limits)
	return limitedSummariser{
		Summariser: s, keys: keys, limits: b.limits,
		calls:  limit.Share{Bucket: &own.calls, Name: b.tenant + ":summaries", Draw: draw},
		tokens: limit.Share{Bucket: &own.tokens, Name: b.tenant + ":summary_tokens", Draw: draw},
	}
}

// Summarise implements condense.Summariser.
func (s limitedSummariser) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	if r.Endpoint.APIKey != "" && slices.Contains(s.keys, config.Secret(r.Endpoint.APIKey)) && !limit.Trusted(ctx) {
		return condense.Reply{}, &condense.CallError{Kind: condense.FailureUntrusted}
	}
	if r.Endpoint.APIKey == "" && limit.Keyless(ctx) && r.Endpoint.BaseURL != s.named { // it would be called with the client's key
		return condense.Reply{}, &condense.CallError{Kind: condense.FailureUntrusted}
	}
	if limit.Spent(ctx, r.Model) || !s.admit(time.Now()) {
		return condense.Reply{}, &condense.CallError{Kind: condense.FailureLimited}
	}
	reply, err := s.Summariser.Summarise(ctx, r)
	if s.limits.SummaryTokens > 0 {
		s.tokens.Correct(cost(r, reply), s.limits.SummaryTokens)
	}
	return reply, err // the summariser's own error, not wrapped
}

// admit takes a call from the limits. It returns false if they are used up.
func (s limitedSummariser) admit(now time.Time) bool {
	if perMinute := s.limits.SummaryTokens; perMinute > 0 && s.tokens.Full(now, perMinute) > 0 {
		return false
	}
	if perMinute := s.limits.Summaries; perMinute > 0 {
		_, ok := s.calls.Take(now, 1, perMinute)
		return ok
	}
	return true
}

// cost returns the tokens of a call, estimated if the server does not report them.
func cost(r condense.Request, reply condense.Reply) int {
	if n := max(reply.Usage.Input, 0) + max(reply.Usage.Output, 0); n > 0 {
		return n
	}
	return (r.Size() + len(reply.Text)) / 4
}

// openKeys names the operator's keys that any client can spend, because none has to authenticate.
func openKeys(cfg *config.Config) (names []string) {
	if !cfg.IsOpen() {
		return nil
	}
	if cfg.Upstream.APIKey != "" {
		names = append(names, "upstream.api_key")
	}
	for _, p := range provider.Names() {
		if up := cfg.UpstreamFor(config.Tenant{}, p); up.APIKey != "" && up.APIKey != cfg.Upstream.APIKey {
			names = append(names, "upstream."+string(p)+".api_key")
		}
	}
	for name, llm := range cfg.LLMs {
		if llm.APIKey != "" {
			names = append(names, "llms."+name+".api_key")
		}
	}
	slices.Sort(names)
	return names
}

// origins returns the origins of web pages that may use the proxy. By default those are all, because a page must know a key. It need not if any
// client can spend the operator's keys: then there are none.
func origins(cfg *config.Config) proxy.Origins {
	switch {
	case cfg.CORS.Origins != nil:
		return cfg.CORS.Origins
	case len(openKeys(cfg)) > 0, len(cfg.Tenants) == 0 && slices.ContainsFunc(cfg.UpstreamsFor(config.Tenant{}), isPrivate):
		return nil
	}
	return proxy.Origins{proxy.AnyOrigin}
}

func isPrivate(up config.Upstream) bool { return !config.OverInternet(up.BaseURL) }

// drawFrom returns a Draw from limits that replicas share in a store, or nil if the store is not shared. A request waits for it no longer
// than timeout. Failures are counted.
func drawFrom(store session.Backend, timeout time.Duration, faults proxy.Faults) limit.Draw {
	kept, ok := store.(*records.Store)
	if !ok || kept.Buckets() == nil {
		return nil
	}
	shared := kept.Buckets()
	return func(bucket string, n, perMinute int, owed bool) (wait time.Duration, ok bool) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		err := session.Recover(func() (err error) {
			wait, err = shared.Draw(ctx, bucket, n, perMinute, owed)
			return err
		})
		if err != nil {
			faults.Lost("shared_limit")
		}
		return wait, err == nil
	}
}
