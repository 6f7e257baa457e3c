package observe_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// scrape returns the metrics in text format.
func scrape(m *observe.Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// value returns the value of a series, or -1 if it does not exist.
func value(t *testing.T, m *observe.Metrics, series string) float64 {
	t.Helper()
	for line := range strings.Lines(scrape(m)) {
		if text, ok := strings.CutPrefix(line, series+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			must(t, err)
			return v
		}
	}
	return -1
}

func wantValues(t *testing.T, m *observe.Metrics, want map[string]float64) {
	t.Helper()
	for series, v := range want {
		if got := value(t, m, series); got != v {
			t.Errorf("%s is %v, want %v", series, got, v)
		}
	}
}

// TestStore runs the conformance suite on a store whose calls are measured.
func TestStore(t *testing.T) {
	metrics := observe.NewMetrics()
	paths := map[session.Backend]string{}
	open := func(t *testing.T, path string, content bool) session.Backend {
		s, err := boltstore.Open(boltstore.Options{Path: path, Content: content, TTL: time.Hour})
		must(t, err)
		m := session.Guard(s, metrics.StoreCalls())
		paths[m] = path
		return m
	}
	fresh := func(t *testing.T, content bool) session.Backend {
		return open(t, filepath.Join(t.TempDir(), "a.db"), content)
	}
	sessiontest.Run(t, func(t *testing.T) session.Backend { return fresh(t, true) }, sessiontest.Hooks{
		WithoutContent: func(t *testing.T) session.Backend { return fresh(t, false) },
		Reopen: func(t *testing.T, s session.Backend) session.Backend {
			must(t, s.Close())
			return open(t, paths[s], true)
		},
	})
	for _, op := range []string{"secret", "find", "thread", "append", "condense", "summary", "events", "trace", "mark", "session", "lock", "save"} {
		if n := value(t, metrics, fmt.Sprintf("dewpoint_store_seconds_count{op=%q}", op)); n <= 0 {
			t.Errorf("no call of %s was measured", op)
		}
	}
}

// TestStoreErrorsBeginAtZero checks that each call of a store has a series from the start.
func TestStoreErrorsBeginAtZero(t *testing.T) {
	metrics := observe.NewMetrics()
	metrics.StoreCalls()
	code, err := os.ReadFile("../../../session/guard.go")
	must(t, err)
	zeros := map[string]float64{}
	for _, op := range regexp.MustCompile(`(?:\.run\(|call\(g, )"([^"]+)"`).FindAllStringSubmatch(string(code), -1) {
		zeros[fmt.Sprintf("dewpoint_store_errors_total{op=%q}", op[1])] = 0
	}
	if len(zeros) < 30 {
		t.Errorf("the code has only %v", zeros)
	}
	wantValues(t, metrics, zeros)
}

// TestLossesBeginAtZero checks that each loss reported in the code has a series from the start, so that alerts see the first loss.
func TestLossesBeginAtZero(t *testing.T) {
	metrics := observe.NewMetrics()
	metrics.StoreCalls()
	zeros := map[string]float64{}
	losses := regexp.MustCompile(`(?:\.Lost|degraded\.writeFailed|\.reserve)\("([^"]+)"`)
	for _, pattern := range []string{"../../../proxy/*.go", "../app/*.go"} {
		files, err := filepath.Glob(pattern)
		must(t, err)
		for _, file := range files {
			code, err := os.ReadFile(file)
			must(t, err)
			for _, op := range losses.FindAllStringSubmatch(string(code), -1) {
				zeros[fmt.Sprintf("dewpoint_store_losses_total{op=%q}", op[1])] = 0
			}
		}
	}
	if len(zeros) < 8 {
		t.Errorf("the code has only %v", zeros)
	}
	wantValues(t, metrics, zeros)
}

// TestStoreErrors checks that a missing record does not count as an error.
func TestStoreErrors(t *testing.T) {
	metrics := observe.NewMetrics()
	store := session.Guard(answering{}, metrics.StoreCalls())
	_, err := store.Find(t.Context(), nil, "")
	_, missing := store.Thread(t.Context(), "x")
	if err == nil || missing == nil {
		t.Fatal("errors were swallowed")
	}
	wantValues(t, metrics, map[string]float64{
		`dewpoint_store_errors_total{op="find"}`: 1, `dewpoint_store_errors_total{op="thread"}`: 0,
	})
}

// answering fails in Find and has no threads.
type answering struct{ session.Backend }

func (answering) Find(context.Context, []session.Hash, session.ThreadID, ...session.Hash) (session.Found, error) {
	return session.Found{}, fmt.Errorf("find: %w", session.ErrUnavailable)
}

func (answering) Thread(context.Context, session.ThreadID) (session.Thread, error) {
	return session.Thread{}, fmt.Errorf("thread: %w", session.ErrNotFound)
}

func TestProcess(t *testing.T) {
	m := observe.NewMetrics()
	m.Build("1.2.3", "abc")
	m.Reloaded(7, time.Unix(1700000000, 0))
	m.NotReloaded()
	m.LinesLost(3)
	m.ExportFailed()
	m.Panicked()
	m.Lost("append")
	wantValues(t, m, map[string]float64{
		"dewpoint_config_reload_success":                   0,
		"dewpoint_config_hash":                             7,
		"dewpoint_config_reload_success_timestamp_seconds": 1700000000,
		`dewpoint_log_lines_dropped_total{cause="full"}`:   3,
		"dewpoint_trace_export_failures_total":             1,
		"dewpoint_panics_total":                            1,
		`dewpoint_store_losses_total{op="append"}`:         1,
	})
	page := scrape(m)
	for _, part := range []string{`dewpoint_build_info{go_version="go1`, `version="1.2.3"} 1`, "\ngo_goroutines ", "\nprocess_resident_memory_bytes "} {
		if !strings.Contains(page, part) {
			t.Errorf("no %s", part)
		}
	}
}

// TestGauges checks that gauges are read at each scrape.
func TestGauges(t *testing.T) {
	m, held, away := observe.NewMetrics(), int64(5), false
	cooling := map[string]bool{"a": true}
	m.Gauges(observe.Gauges{
		InFlight: func() int64 { return held }, Limit: func() int64 { return 10 }, Degraded: func() bool { return away },
		Cooling: func(yield func(string, bool) bool) {
			for tenant, is := range cooling {
				if !yield(tenant, is) {
					return
				}
			}
		},
	})
	wantValues(t, m, map[string]float64{
		"dewpoint_bytes_in_flight": 5, "dewpoint_bytes_in_flight_limit": 10, "dewpoint_store_degraded": 0,
		`dewpoint_summariser_cooling{tenant="a"}`: 1, `dewpoint_summariser_cooling{tenant="b"}`: -1,
	})
	held, away = 6, true
	cooling = map[string]bool{"a": false, "b": true}
	wantValues(t, m, map[string]float64{
		"dewpoint_bytes_in_flight": 6, "dewpoint_store_degraded": 1,
		`dewpoint_summariser_cooling{tenant="a"}`: 0, `dewpoint_summariser_cooling{tenant="b"}`: 1,
	})
}

// TestSeriesBeginAtFirstUse: a hundred idle tenants cost nothing.
func TestSeriesBeginAtFirstUse(t *testing.T) {
	m := observe.NewMetrics()
	o := m.Observer(nil)
	o.Begun()
	plain := record()
	plain.Turn.Saved = proxy.Saving{}
	o.Ended(t.Context(), plain)
	wantValues(t, m, map[string]float64{
		`dewpoint_requests_total{code="",dialect="chat",model="gpt-4o",status="2xx",tenant="a"}`: 1,
		`dewpoint_overflows_relieved_total{tenant="a"}`:                                          -1,
		`dewpoint_hidden_calls_total{tenant="a"}`:                                                -1,
		`dewpoint_sessions_begun_total{tenant="a"}`:                                              -1,
		`dewpoint_request_seconds_count{tenant="b"}`:                                             -1,
	})
}

// record returns the record of an answered request of a condensed thread.
func record() *proxy.Record {
	at := time.Unix(1700000000, 0)
	return &proxy.Record{
		Tenant: "a", Dialect: "chat", Model: "gpt-4o", Status: 200,
		Times: proxy.Times{Begun: at, Read: at, Resolved: at, Ended: at.Add(time.Second), Overhead: time.Millisecond},
		Call:  proxy.Call{Sent: at, First: at.Add(time.Millisecond), Status: 200, Usage: &session.Usage{Input: 400, Cached: 300, Output: 20}},
		Bill:  &proxy.Bill{Usage: session.Usage{Input: 400, Cached: 300, Output: 20}, Reported: true, Priced: true, Pico: 18e8},
		Turn: &proxy.TurnRecord{
			Session: "s", Thread: "t", Source: session.SourcePrefix, Before: session.Size{Events: 9, Tokens: 1000}, Known: 900,
			After: session.Size{Events: 4, Tokens: 400}, Account: proxy.Account{Charged: 0.0018, Saved: proxy.Saving{Tokens: 600, NotSent: 0.0008, Rewritten: -0.0003}},
		},
	}
}

// TestSavingIsCounted checks that savings and costs are added to separate counters, and that both exist.
func TestSavingIsCounted(t *testing.T) {
	m := observe.NewMetrics()
	o := m.Observer(nil)
	o.Begun()
	o.Ended(t.Context(), record())
	wantValues(t, m, map[string]float64{
		"dewpoint_requests_in_flight":                                           0,
		`dewpoint_saved_tokens_total{model="gpt-4o",tenant="a"}`:                600,
		`dewpoint_spent_tokens_total{kind="request",model="gpt-4o",tenant="a"}`: 0,
		`dewpoint_saved_usd_total{model="gpt-4o",tenant="a"}`:                   0.0005,
		`dewpoint_upstream_usd_total{model="gpt-4o",tenant="a"}`:                0.0018,
		`dewpoint_spent_usd_total{kind="cache",model="gpt-4o",tenant="a"}`:      0,
		`dewpoint_tokens_total{model="gpt-4o",stage="forwarded",tenant="a"}`:    400,
		`dewpoint_tokens_total{model="gpt-4o",stage="cached",tenant="a"}`:       300,
		`dewpoint_recognised_total{source="prefix",tenant="a"}`:                 1,
		`dewpoint_upstream_first_byte_seconds_count{tenant="a"}`:                1,
		`dewpoint_overhead_seconds_count{part="answer",tenant="a"}`:             -1,
		`dewpoint_overflows_relieved_total{tenant="a"}`:                         -1,
		`dewpoint_reckoned_total{model="gpt-4o",tenant="a"}`:                    -1,
	})
	longer := record()
	longer.Turn.Before.Tokens, longer.Turn.Relieved, longer.Turn.Saved = 300, 2, proxy.Saving{Tokens: -100, NotSent: -0.001}
	o.Ended(t.Context(), longer)
	wantValues(t, m, map[string]float64{
		`dewpoint_saved_tokens_total{model="gpt-4o",tenant="a"}`:                600,
		`dewpoint_spent_tokens_total{kind="request",model="gpt-4o",tenant="a"}`: 100,
		`dewpoint_spent_usd_total{kind="cache",model="gpt-4o",tenant="a"}`:      0.001,
		`dewpoint_overflows_relieved_total{tenant="a"}`:                         2,
	})
}

// TestUnansweredIsNotCounted checks that tokens of unanswered requests are not counted.
func TestUnansweredIsNotCounted(t *testing.T) {
	m := observe.NewMetrics()
	r := record()
	r.Turn.After, r.Call, r.Bill, r.Status, r.Code = session.Size{}, proxy.Call{}, nil, 429, "tokens_per_minute_exceeded"
	m.Observer(nil).Ended(t.Context(), r)
	wantValues(t, m, map[string]float64{
		`dewpoint_tokens_total{model="gpt-4o",stage="in",tenant="a"}`:                                                      -1,
		`dewpoint_requests_total{code="tokens_per_minute_exceeded",dialect="chat",model="gpt-4o",status="4xx",tenant="a"}`: 1,
	})
}

// TestStatusClasses checks that every status has a class.
func TestStatusClasses(t *testing.T) {
	m := observe.NewMetrics()
	for _, status := range []int{0, 99, 101, 299, 499, 599, 600} {
		m.Observer(nil).Ended(t.Context(), &proxy.Record{Status: status})
	}
	for class, n := range map[string]float64{"other": 3, "1xx": 1, "2xx": 1, "4xx": 1, "5xx": 1} {
		wantValues(t, m, map[string]float64{fmt.Sprintf(`dewpoint_requests_total{code="",dialect="",model="",status=%q,tenant=""}`, class): n})
	}
}

// TestOutcomesAreCounted checks that condensations are counted by outcome.
func TestOutcomesAreCounted(t *testing.T) {
	m := observe.NewMetrics()
	for _, outcome := range []proxy.Outcome{proxy.OutcomeCondensed, proxy.OutcomeFallback, proxy.OutcomeFailed, proxy.OutcomeObserved, proxy.OutcomePrepared, proxy.OutcomeNotPrepared} {
		m.Observer(nil).Condensed(proxy.Condensation{Tenant: "a", Condenser: "llm", Reason: "events", Outcome: outcome})
	}
	for _, outcome := range []string{"condensed", "fallback", "failed", "observed", "prepared", "not_prepared"} {
		wantValues(t, m, map[string]float64{
			fmt.Sprintf(`dewpoint_condensations_total{condenser="llm",outcome=%q,reason="events",tenant="a"}`, outcome): 1,
		})
	}
}
