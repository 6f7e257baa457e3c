package app

import (
	"cmp"
	"net/http"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/findings"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/observe"
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
