package observe_test

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// clock is a clock that the test moves.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time                       { return c.now }
func (c *clock) NewTicker(time.Duration) *time.Ticker { panic("not used") }

// TestLinesAreSampled checks that plain requests beyond the limit of a second are not logged, and that others always are.
func TestLinesAreSampled(t *testing.T) {
	const most, more = 200, 7
	core, logs := observer.New(zap.InfoLevel)
	now := &clock{time.Unix(1700000000, 0)}
	m := observe.NewMetrics()
	o := m.Observer(zap.New(core, zap.WithClock(now)))
	for range most + more {
		o.Ended(t.Context(), record())
	}
	stranger := &proxy.Record{Status: 401, Code: "invalid_api_key"} // requests without a tenant are sampled as well
	o.Ended(t.Context(), stranger)
	if n := logs.FilterMessage("request").Len(); n != most {
		t.Errorf("%d lines, want %d", n, most)
	}
	wantValues(t, m, map[string]float64{`dewpoint_log_lines_dropped_total{cause="sampled"}`: more + 1})
	wrong, condensed := record(), record()
	wrong.Status, wrong.Code = 500, proxy.CodeUpstream5xx
	condensed.Turn.Condensed = []session.Condensation{{Reason: "events"}}
	o.Ended(t.Context(), wrong)
	o.Ended(t.Context(), condensed)
	if n := logs.FilterMessage("request").Len(); n != most+2 {
		t.Errorf("%d lines, want %d", n, most+2)
	}
	now.now = now.now.Add(time.Second)
	o.Ended(t.Context(), record())
	if n := logs.FilterMessage("request").Len(); n != most+3 {
		t.Errorf("a second later there are %d lines, want %d", n, most+3)
	}
}
