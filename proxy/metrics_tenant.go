package proxy

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// otherModel is what a model is called that is neither configured nor built in: a client picks the name.
const otherModel = "other"

// meters are one tenant's metrics, looked up once, so that counting a request costs a few atomic additions.
type meters struct {
	metrics    *Metrics
	tenant     string
	seconds    prometheus.Observer
	firstByte  prometheus.Observer
	overhead   prometheus.Observer
	hold       prometheus.Observer
	condensing prometheus.Observer
	sessions   prometheus.Counter
	threads    prometheus.Counter
	forks      prometheus.Counter
	relieved   prometheus.Counter
	sources    map[session.Source]prometheus.Counter // never written again
	series     table[seriesName, *series]
}

// seriesName says which requests of a tenant are counted together.
type seriesName struct {
	dialect string // empty: passed through, or not known yet
	model   string // known, or otherModel; empty where there is none
}

func newMeters(m *Metrics, tenant string) *meters {
	t := &meters{
		metrics:    m,
		tenant:     tenant,
		seconds:    m.traffic.seconds.WithLabelValues(tenant),
		firstByte:  m.traffic.firstByte.WithLabelValues(tenant),
		overhead:   m.traffic.overhead.WithLabelValues(tenant, "request"),
		hold:       m.traffic.overhead.WithLabelValues(tenant, "answer"),
		condensing: m.history.seconds.WithLabelValues(tenant),
		sessions:   m.history.sessions.WithLabelValues(tenant),
		threads:    m.history.threads.WithLabelValues(tenant, "new"),
		forks:      m.history.threads.WithLabelValues(tenant, "fork"),
		relieved:   m.history.relieved.WithLabelValues(tenant),
		sources:    map[session.Source]prometheus.Counter{},
	}
	for _, source := range [...]session.Source{session.SourceKey, session.SourcePrefix, session.SourceTrace, session.SourceNew} {
		t.sources[source] = m.history.recognised.WithLabelValues(tenant, string(source))
	}
	return t
}

// of looks up the metrics of all tenants.
func (m *Metrics) of(tenants *Tenants) map[*Tenant]*meters {
	out := make(map[*Tenant]*meters, len(tenants.tenants))
	for _, t := range tenants.tenants {
		out[t] = newMeters(m, t.Name)
	}
	return out
}

// of gives the series of a dialect and model.
func (t *meters) of(name seriesName) *series {
	if s, ok := t.series.get(name); ok {
		return s
	}
	return t.series.put(name, newSeries(t.metrics, t.tenant, name))
}

// series are the metrics of one tenant's requests of one dialect and model.
type series struct {
	metrics     *Metrics
	tenant      string
	name        seriesName
	in          prometheus.Counter
	forwarded   prometheus.Counter
	prompt      prometheus.Counter
	cached      prometheus.Counter
	completion  prometheus.Counter
	savedTokens prometheus.Counter
	spentTokens prometheus.Counter
	savedUSD    prometheus.Counter
	spentUSD    prometheus.Counter
	endings     table[ending, prometheus.Counter]
}

// ending is how a request ended.
type ending struct {
	class int    // first digit of the status
	code  string // of our own error, or what upstream did; empty: nothing went wrong
}

func newSeries(m *Metrics, tenant string, name seriesName) *series {
	tokens := func(stage string) prometheus.Counter {
		return m.traffic.tokens.WithLabelValues(tenant, name.model, stage)
	}
	return &series{
		metrics: m, tenant: tenant, name: name,
		in: tokens("in"), forwarded: tokens("forwarded"),
		prompt: tokens("prompt"), cached: tokens("cached"), completion: tokens("completion"),
		savedTokens: m.savings.tokens.WithLabelValues(tenant, name.model),
		spentTokens: m.savings.spentTokens.WithLabelValues(tenant, name.model, "request"),
		savedUSD:    m.savings.usd.WithLabelValues(tenant, name.model),
		spentUSD:    m.savings.spentUSD.WithLabelValues(tenant, name.model, "cache"),
	}
}

// ended counts a request.
func (s *series) ended(e ending) {
	c, ok := s.endings.get(e)
	if !ok {
		c = s.endings.put(e, s.metrics.traffic.requests.WithLabelValues(
			s.tenant, s.name.dialect, s.name.model, statusClass(e.class), e.code,
		))
	}
	c.Inc()
}

func statusClass(digit int) string {
	if digit < 1 || digit > 5 {
		return "other"
	}
	return [...]string{"1xx", "2xx", "3xx", "4xx", "5xx"}[digit-1]
}

// used counts what upstream reported of a request.
func (s *series) used(u session.Usage) {
	s.prompt.Add(float64(max(u.Input, 0)))
	s.cached.Add(float64(max(u.Cached, 0)))
	s.completion.Add(float64(max(u.Output, 0)))
}

// saved counts what a request saved, or cost more.
func (s *series) saved(tokens int, usd float64) {
	signed(s.savedTokens, s.spentTokens, float64(tokens))
	signed(s.savedUSD, s.spentUSD, usd)
}

// signed adds to one of two counters: a counter can not go down.
func signed(up, down prometheus.Counter, value float64) {
	switch {
	case value > 0:
		up.Add(value)
	case value < 0:
		down.Add(-value)
	}
}

// table is a map that is read at every request and hardly ever written: reading takes no lock and allocates nothing.
// Values are never taken out, so its keys must be bounded. The zero value is ready.
type table[K comparable, V any] struct {
	read  atomic.Pointer[map[K]V]
	write sync.Mutex
}

func (t *table[K, V]) get(key K) (value V, ok bool) {
	if m := t.read.Load(); m != nil {
		value, ok = (*m)[key]
	}
	return value, ok
}

// put adds a value, unless there is one, and gives the one that is there now.
func (t *table[K, V]) put(key K, value V) V {
	t.write.Lock()
	defer t.write.Unlock()
	if there, ok := t.get(key); ok {
		return there
	}
	grown := map[K]V{key: value}
	if old := t.read.Load(); old != nil {
		for k, v := range *old {
			grown[k] = v
		}
	}
	t.read.Store(&grown)
	return value
}
