package app

import (
	"cmp"
	"net/http"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/findings"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/observe"
)

// calls is what tenants share: how our own calls go out, and who takes note of them. On nil they go out by default, unnoted.
type calls struct {
	transport http.RoundTripper
	metrics   *observe.Metrics // nil: they are not measured
	spans     *observe.Spans   // nil: not traced
	purses    purses
	shelves   *shelves           // what tenants' models are told; nil: nothing
	memory    *findings.Courier  // where findings go; nil: nowhere
	draw      limit.Draw         // from what replicas share; nil: they share nothing
	health    *summariser.Health // of the models that are called; nil: all are well
	lacks     *summariser.Lacks  // what their servers do not take; nil: not remembered
}

// model is how models are called that are silent for so long at most.
func (c *calls) model(timeout time.Duration, temperature *float64) summariser.Caller {
	s := summariser.Caller{Client: c.client(), Timeout: timeout, Temperature: narrow(temperature)}
	if c != nil {
		s.Lacks = c.lacks
	}
	return s
}

func (c *calls) client() *http.Client {
	switch {
	case c == nil:
		return &http.Client{}
	case c.spans == nil:
		return &http.Client{Transport: c.transport}
	}
	return &http.Client{Transport: observe.Propagate(c.transport)}
}

// purse is what a tenant has spent.
func (c *calls) purse(tenant string, l limit.Tenant) purse {
	own := &buckets{}
	if c != nil {
		own = c.purses.of(tenant)
	}
	return purse{
		calls:  limit.Share{Bucket: &own.calls, Name: tenant + ":summaries", Draw: c.drawOf(l)},
		tokens: limit.Share{Bucket: &own.tokens, Name: tenant + ":summary_tokens", Draw: c.drawOf(l)},
	}
}

// drawOf is how a tenant with these limits takes of them together with other replicas, nil if it does not.
func (c *calls) drawOf(l limit.Tenant) limit.Draw {
	if c == nil || !l.Shared {
		return nil
	}
	return c.draw
}

// healthOf gives a tenant's use of the models' health, nil if that is not watched.
func (c *calls) healthOf() *summariser.Tenant {
	if c == nil || c.health == nil {
		return nil
	}
	return c.health.Tenant()
}

// noted makes a summariser one whose calls are taken note of.
func (c *calls) noted(s observe.Summariser) condense.Summariser {
	if c == nil || c.metrics == nil {
		return s.Summariser
	}
	s.Metrics, s.Spans = c.metrics, c.spans
	return s
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
	if m := b.out; m != nil && m.metrics != nil {
		w.Model = observe.Summariser{Summariser: w.Model, Tenant: c.Name, Warming: true, Metrics: m.metrics, Spans: m.spans, Models: models(b.config)}
		w.Told = func(outcome engine.WarmOutcome) { m.metrics.Warmed(c.Name, outcome) }
	}
	return w
}

// told is what a tenant's models are told when a person's words call for it.
func (c *calls) told(k config.Knowledge) (engine.Knowledge, error) {
	if c == nil || c.shelves == nil {
		return engine.Knowledge{}, nil
	}
	return c.shelves.of(k)
}
