package app

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/findings"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/observe"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// calls is what tenants share: how our own calls go out, and who takes note of them.
type calls struct {
	transport http.RoundTripper
	metrics   *observe.Metrics   // nil: they are not measured
	spans     *observe.Spans     // nil: not traced
	spent     sync.Map           // by tenant: buckets
	shelves   shelves            // what tenants' models are told
	memory    *findings.Courier  // where findings go; nil: nowhere
	draw      limit.Draw         // from what replicas share; nil: they share nothing
	health    *summariser.Health // of the models that are called
	lacks     *summariser.Lacks  // what their servers do not take
}

func newCalls(transport http.RoundTripper) (*calls, error) {
	health, err := summariser.NewHealth(time.Now)
	if err != nil {
		return nil, err
	}
	lacks, err := summariser.NewLacks(time.Now)
	return &calls{transport: transport, health: health, lacks: lacks}, err
}

// model is how models are called that are silent for so long at most.
func (c *calls) model(timeout time.Duration, temperature *float64) summariser.Caller {
	s := summariser.Caller{Client: c.client(), Timeout: timeout, Lacks: c.lacks}
	if temperature != nil {
		s.Temperature = new(float32(*temperature))
	}
	return s
}

func (c *calls) client() *http.Client {
	if c.spans == nil {
		return &http.Client{Transport: c.transport}
	}
	return &http.Client{Transport: observe.Propagate(c.transport)}
}

// drawOf is how a tenant with these limits takes of them together with other replicas, nil if it does not.
func (c *calls) drawOf(l limit.Tenant) limit.Draw {
	if !l.Shared {
		return nil
	}
	return c.draw
}

// warm is how a tenant's prompts are kept in providers' caches.
func (b builder) warm(c config.Tenant) *engine.Warm {
	condensed := b.config.CondenserFor(c).Uses(byPrice)
	w := &engine.Warm{
		Model: b.out.model(summariser.DefaultTimeout, nil),
		Prices: func(model string) *condense.Economics {
			e := b.prices(model, model)
			if e != nil && !condensed {
				e.Target = 0
			}
			return e
		},
		USD: cmp.Or(c.KeepWarmUSD, config.DefaultKeepWarmUSD),
	}
	if b.out.metrics != nil {
		w.Model = b.noted(observe.Summariser{Summariser: w.Model, Warming: true})
		w.Told = func(outcome engine.WarmOutcome) { b.out.metrics.Warmed(c.Name, outcome) }
	}
	return w
}

// spending is a tenant's summariser within the tenant's limits. It spends a key of the operator on trusted clients only.
type spending struct {
	condense.Summariser
	keys          []config.Secret // the operator's
	limits        limit.Tenant
	calls, tokens limit.Share
}

var _ condense.Summariser = spending{}

// buckets hold what a tenant has spent on summaries. They outlive a configuration.
type buckets struct{ calls, tokens limit.Bucket }

// spending has a summariser keep to the tenant's limits. The keys are those by which its calls may be paid that are not its clients' own.
func (b builder) spending(s condense.Summariser, keys ...config.Secret) spending {
	known, _ := b.out.spent.LoadOrStore(b.tenant, &buckets{})
	own, draw := known.(*buckets), b.out.drawOf(b.limits)
	return spending{
		Summariser: s, keys: keys, limits: b.limits,
		calls:  limit.Share{Bucket: &own.calls, Name: b.tenant + ":summaries", Draw: draw},
		tokens: limit.Share{Bucket: &own.tokens, Name: b.tenant + ":summary_tokens", Draw: draw},
	}
}

// Summarise implements condense.Summariser.
func (s spending) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	if r.Endpoint.APIKey != "" && slices.Contains(s.keys, config.Secret(r.Endpoint.APIKey)) && !limit.Trusted(ctx) {
		return condense.Reply{}, &condense.CallError{Kind: condense.FailureUntrusted}
	}
	if !s.within(time.Now()) {
		return condense.Reply{}, &condense.CallError{Kind: condense.FailureLimited}
	}
	reply, err := s.Summariser.Summarise(ctx, r)
	if s.limits.SummaryTokens > 0 {
		s.tokens.Correct(cost(r, reply), s.limits.SummaryTokens)
	}
	return reply, err //nolint:wrapcheck // it is the summariser's
}

// within reports whether another call is within the limits, and takes it.
func (s spending) within(now time.Time) bool {
	if most := s.limits.SummaryTokens; most > 0 && s.tokens.Full(now, most) > 0 {
		return false
	}
	if most := s.limits.Summaries; most > 0 {
		_, ok := s.calls.Take(now, 1, most)
		return ok
	}
	return true
}

// cost is what a call took, in tokens; a guess where the server does not say.
func cost(r condense.Request, reply condense.Reply) int {
	if n := max(reply.Usage.Input, 0) + max(reply.Usage.Output, 0); n > 0 {
		return n
	}
	return (r.Size() + len(reply.Text)) / 4
}

// openKeys names the keys that every client spends, where none has to authenticate.
func openKeys(cfg *config.Config) (names []string) {
	if len(cfg.Tenants) > 0 {
		return nil
	}
	if cfg.Upstream.APIKey != "" {
		names = append(names, "upstream.api_key")
	}
	for name, llm := range cfg.LLMs {
		if llm.APIKey != "" {
			names = append(names, "llms."+name+".api_key")
		}
	}
	slices.Sort(names)
	return names
}

// drawWait is how long a request waits at most to learn what is left of a limit that replicas share.
const drawWait = time.Second

// drawFrom takes what replicas share from a store that they share; nil if it is none. What is asked for in vain is counted.
func drawFrom(store session.Backend, faults proxy.Faults) limit.Draw {
	shared, is := store.(session.Buckets)
	if !is {
		return nil
	}
	return func(bucket string, n, perMinute int, owed bool) (wait time.Duration, ok bool) {
		ctx, cancel := context.WithTimeout(context.Background(), drawWait)
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
