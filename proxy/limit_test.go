package proxy_test

import (
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// stopped is a clock that a test advances.
type stopped struct{ at atomic.Int64 }

func (c *stopped) now() time.Time       { return time.Unix(1_700_000_000, c.at.Load()) }
func (c *stopped) pass(d time.Duration) { c.at.Add(int64(d)) }

// bounded returns two tenants: a with these limits, and b with none.
func bounded(limits limit.Tenant) func(*url.URL) []*proxy.Tenant {
	return func(base *url.URL) []*proxy.Tenant {
		tenants := two(base)
		for _, t := range tenants {
			t.Condenser = condense.Noop{}
		}
		tenants[0].Limits = limits
		return tenants
	}
}

// as sends a request of one of the tenants.
func (r *rig) as(key, body string) (*http.Response, string) {
	r.t.Helper()
	return r.ask(body, "Authorization", "Bearer "+key)
}

// wantLimited checks that a request of a is refused and one of b is not. It returns the seconds in Retry-After.
func (r *rig) wantLimited(body, code string) int {
	r.t.Helper()
	resp, answer := r.as(keyA, body)
	wantError(r.t, resp, answer, 429, code)
	if !strings.Contains(answer, `"type":"rate_limit_error"`) {
		r.t.Errorf("answer %s", answer)
	}
	wait, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || wait < 1 {
		r.t.Errorf("Retry-After %q", resp.Header.Get("Retry-After"))
	}
	if resp, answer := r.as(keyB, body); resp.StatusCode != http.StatusOK {
		r.t.Errorf("the other tenant: status %d, %s", resp.StatusCode, answer)
	}
	return wait
}

func (r *rig) wantServed(body string) {
	r.t.Helper()
	if resp, answer := r.as(keyA, body); resp.StatusCode != http.StatusOK {
		r.t.Errorf("status %d, %s", resp.StatusCode, answer)
	}
}

func TestRequestsPerMinute(t *testing.T) {
	var clock stopped
	r := newRig(t, setup{tenants: bounded(limit.Tenant{Requests: 6}), now: clock.now})
	for range 6 {
		r.wantServed(hello)
	}
	if wait := r.wantLimited(hello, "requests_per_minute_exceeded"); wait != 10 {
		t.Errorf("Retry-After %d, want 10", wait)
	}
	clock.pass(9 * time.Second)
	if wait := r.wantLimited(hello, "requests_per_minute_exceeded"); wait != 1 {
		t.Errorf("Retry-After %d, want 1", wait)
	}
	clock.pass(time.Second + time.Millisecond)
	resp, err := r.client.Do(r.request(guard(t), http.MethodGet, "/v1/models", "", "X-Api-Key", keyA)) // every path counts
	must(t, err)
	drain(t, resp)
	r.wantLimited(hello, "requests_per_minute_exceeded")
	if n := r.metric(`dewpoint_requests_total{code="requests_per_minute_exceeded",dialect="",model="",status="4xx",tenant="a"}`); n != 3 {
		t.Errorf("%v were counted", n)
	}
}

// using is an upstream that reports a usage.
func using(input, output int) func(*fakeupstream.Request) fakeupstream.Answer {
	return func(*fakeupstream.Request) fakeupstream.Answer {
		raw := fmt.Sprintf(`{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hi"}}],`+
			`"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, input, output)
		return fakeupstream.Answer{Raw: &fakeupstream.Raw{Status: 200, ContentType: "application/json", Body: []byte(raw)}}
	}
}

func TestTokensPerMinute(t *testing.T) {
	var clock stopped
	r := newRig(t, setup{
		tenants: bounded(limit.Tenant{Tokens: 6000}), now: clock.now,
		upstream: fakeupstream.Options{Reply: using(100, 200)},
	})
	large := messages(say("user", strings.Repeat("x", 4*5000))) // counted as 5,007
	r.wantServed(large)                                         // and took 300
	r.wantServed(large)
	r.wantServed(large) // 900 by now, so that another 5,007 do not fit on top of the 1,200 of four
	r.wantServed(large)
	if wait := r.wantLimited(large, "tokens_per_minute_exceeded"); wait != 3 { // 207 too many, at 100 a second
		t.Errorf("Retry-After %d, want 3", wait)
	}
	r.wantServed(hello) // a small one fits
	clock.pass(time.Minute)
	r.wantServed(messages(say("user", strings.Repeat("x", 4*50_000)))) // one that never fits is served when nothing was taken
	r.final[`dewpoint_requests_total{code="tokens_per_minute_exceeded",dialect="chat",model="gpt-4o",status="4xx",tenant="a"}`] = 1
}

// TestFailedRequestsUseNoTokens: requests that fail because upstream is down do not use up a tenant's minute.
func TestFailedRequestsUseNoTokens(t *testing.T) {
	var clock stopped
	r := newRig(t, setup{
		base: "http://127.0.0.1:1/v1", tenants: bounded(limit.Tenant{Tokens: 6000}), now: clock.now,
	})
	large := messages(say("user", strings.Repeat("x", 4*5000)))
	for range 3 {
		resp, answer := r.as(keyA, large)
		wantError(t, resp, answer, 502, "upstream_unreachable")
	}
}

// TestReportedUsageIsCharged: the usage of an answer counts, even if it is more than a minute's worth. A refused request uses nothing.
func TestReportedUsageIsCharged(t *testing.T) {
	var clock stopped
	reply := using(9000, 3000)
	r := newRig(t, setup{
		tenants: bounded(limit.Tenant{Tokens: 6000}), now: clock.now,
		upstream: fakeupstream.Options{Reply: func(req *fakeupstream.Request) fakeupstream.Answer { return reply(req) }},
	})
	for range 20 {
		r.up.Script(failure(500))
		if resp, _ := r.as(keyA, messages(say("user", strings.Repeat("x", 4*5000)))); resp.StatusCode != 500 {
			t.Fatalf("status %d", resp.StatusCode)
		}
	}
	r.wantServed(hello)
	if wait := r.wantLimited(hello, "tokens_per_minute_exceeded"); wait != 61 {
		t.Errorf("Retry-After %d, want 61", wait)
	}
	clock.pass(61 * time.Second)
	reply = using(-1<<40, -1<<40)
	r.wantServed(hello)
	r.wantServed(hello) // an upstream that talks nonsense gives no credit
	clock.pass(time.Hour)
	reply = using(6000, 0)
	r.wantServed(hello)
	r.wantLimited(hello, "tokens_per_minute_exceeded")
}

// TestTokensOfStreamsAreChargedAlsoWithoutTheStore counts the usage at the end of a stream, and estimates if nothing can be counted.
func TestTokensOfStreamsAreChargedAlsoWithoutTheStore(t *testing.T) {
	var clock stopped
	r := newRig(t, setup{tenants: bounded(limit.Tenant{Tokens: 1000}), now: clock.now, sessions: noSessions{}})
	large := messages(say("user", strings.Repeat("x", 3600)))
	r.up.Script(fakeupstream.Answer{Raw: &fakeupstream.Raw{Status: 200, ContentType: "application/json", Body: []byte("{}")}})
	r.wantServed(large)
	r.wantLimited(large, "tokens_per_minute_exceeded")
	clock.pass(time.Minute)
	r.up.Script(fakeupstream.Answer{Raw: &fakeupstream.Raw{Status: 200, ContentType: "text/event-stream", Body: []byte(
		`data: {"choices":[],"usage":{"prompt_tokens":900,"completion_tokens":100}}` + "\n\ndata: [DONE]\n\n")}})
	r.wantServed(`{"stream":true,` + hello[1:])
	r.wantLimited(hello, "tokens_per_minute_exceeded")
}

func TestBodyOfATenant(t *testing.T) {
	const most = 20 << 10
	r := newRig(t, setup{tenants: bounded(limit.Tenant{Body: most})})
	fits := messages(say("user", strings.Repeat("x", most-len(messages(say("user", ""))))))
	r.wantServed(fits)
	for _, size := range []int{most + 1, 2 * most} {
		body := fits + strings.Repeat(" ", size-most)
		resp, answer := r.as(keyA, body)
		wantError(t, resp, answer, 413, "request_too_large")
		if resp, _ := r.as(keyB, body); resp.StatusCode != http.StatusOK {
			t.Errorf("the other tenant: status %d", resp.StatusCode)
		}
	}
	w := r.dial() // before it is read: the body never comes
	w.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: %d\r\n\r\n%s", chatPath, keyA, 4*most, strings.Repeat(" ", 8<<10)))
	resp, answer := w.answer(http.MethodPost)
	wantError(t, resp, answer, 413, "request_too_large")
	w.wantEnd()
	if n := r.metric(`dewpoint_requests_total{code="request_too_large",dialect="",model="",status="4xx",tenant="a"}`); n != 3 {
		t.Errorf("%v were counted", n)
	}
}

// TestRefusalNamesTheLimitAndItsSetting: the answer to a refused request names whose limit it is, and the setting that would raise it.
func TestRefusalNamesTheLimitAndItsSetting(t *testing.T) {
	for _, c := range []struct {
		tenants func(limit.Tenant) func(*url.URL) []*proxy.Tenant
		limits  limit.Tenant
		body    string
		want    string
	}{
		{bounded, limit.Tenant{Requests: 1}, hello, "The limit of this key's tenant is 1 requests a minute"},
		{ofAll, limit.Tenant{Requests: 1}, hello, "The limit of all clients together is 1 requests a minute"},
		{bounded, limit.Tenant{Body: 100}, hello + strings.Repeat(" ", 100), "raise max_body in the tenant's limits, or in limits.tenant."},
		{ofAll, limit.Tenant{Body: 100}, hello + strings.Repeat(" ", 100), "raise limits.tenant.max_body."},
		{bounded, limit.Tenant{Body: 1000}, strings.Repeat(" ", 1001), "raise limits.max_body."},
		{ofAll, limit.Tenant{}, strings.Repeat(" ", 1001), "raise limits.max_body."},
	} {
		r := newRig(t, setup{tenants: c.tenants(c.limits), limits: func(l *proxy.Limits) { l.Body = 1000 }})
		r.as(keyA, hello)
		if _, answer := r.as(keyA, c.body); !strings.Contains(answer, c.want) {
			t.Errorf("want %q: %s", c.want, answer)
		}
	}
}

// ofAll returns the tenant that takes all clients, with these limits.
func ofAll(limits limit.Tenant) func(*url.URL) []*proxy.Tenant {
	return one(func(t *proxy.Tenant) { t.Limits = limits })
}

// TestConcurrentRequests fills a tenant's places. However a request ends, it gives its place back once.
func TestConcurrentRequests(t *testing.T) {
	quick.Skip(t)
	hold := make(chan struct{})
	r := newRig(t, setup{tenants: bounded(limit.Tenant{Concurrent: 2}), limits: func(l *proxy.Limits) { l.Body = 64 << 10 }})
	idle := func(why string) {
		t.Helper()
		var held [2]*wire
		for i := range held {
			r.up.Script(fakeupstream.Answer{Fault: fakeupstream.Fault{Hold: hold}})
			held[i] = r.dial()
			held[i].sendAs(keyA, `{"stream":true,`+hello[1:])
			if resp := held[i].begin(http.MethodPost); resp.StatusCode != http.StatusOK {
				t.Fatalf("%s: place %d is taken", why, i)
			}
		}
		if wait := r.wantLimited(hello, "concurrent_requests_exceeded"); wait != 1 {
			t.Errorf("Retry-After %d", wait)
		}
		for _, w := range held {
			w.Close() // the client is gone
		}
		eventually(t, "the places are free", func() bool { return r.server.Busy("a") == 0 })
	}
	idle("at first")
	idle("after the clients left")
	resp, answer := r.as(keyA, strings.Repeat(" ", 65<<10))
	wantError(t, resp, answer, 413, "request_too_large")
	resp, answer = r.as(keyA, "{")
	wantError(t, resp, answer, 400, "invalid_json")
	r.up.Script(failure(503))
	r.as(keyA, hello)
	w := r.dial()
	w.send("POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nAuthorization: " + keyA + "\r\nContent-Length: 50000\r\n\r\n" + strings.Repeat(" ", 10_000)) // a part of a body
	eventually(t, "the request came", func() bool { return r.server.Busy("a") == 1 })
	w.Close()
	eventually(t, "the places are free", func() bool { return r.server.Busy("a") == 0 })
	head, err := r.client.Do(r.request(guard(t), http.MethodHead, "/v1/models", "", "Authorization", keyA))
	must(t, err)
	drain(t, head)
	eventually(t, "the places are free", func() bool { return r.server.Busy("a") == 0 })
	idle("after errors of all kinds")
}

// TestPanicsGiveTheirPlaceBack has everything panic that can: no place is lost.
func TestPanicsGiveTheirPlaceBack(t *testing.T) {
	for name, s := range map[string]setup{
		"sessions": {sessions: panicking{}}, "tokens": {tokens: panicking{}}, "transport": {transport: panicking{}},
		"no upstream": {base: "http://127.0.0.1:1/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			s.tenants = bounded(limit.Tenant{Concurrent: 1})
			r := newRig(t, s)
			r.final["dewpoint_panics_total"] = 3
			if name == "no upstream" {
				r.final["dewpoint_panics_total"] = 0
			}
			for range 3 {
				served := name == "sessions" || name == "tokens"
				if resp, answer := r.as(keyA, hello); (resp.StatusCode == http.StatusOK) != served {
					t.Errorf("status %d, %s", resp.StatusCode, answer)
				}
				eventually(t, "the place is free", func() bool { return r.server.Busy("a") == 0 })
			}
		})
	}
}

// TestConcurrentRequestsStayWithinTheLimit: there are never more than the limit of requests under way.
func TestConcurrentRequestsStayWithinTheLimit(t *testing.T) {
	const bound = 3
	var under, most atomic.Int64
	r := newRig(t, setup{tenants: bounded(limit.Tenant{Concurrent: bound}), upstream: fakeupstream.Options{
		Reply: func(*fakeupstream.Request) fakeupstream.Answer {
			n := under.Add(1)
			defer under.Add(-1)
			for {
				old := most.Load()
				if n <= old || most.CompareAndSwap(old, n) {
					return fakeupstream.Answer{Content: "hi"}
				}
			}
		},
	}})
	var served, refused atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				resp, _ := r.as(keyA, hello)
				switch resp.StatusCode {
				case http.StatusOK:
					served.Add(1)
				case http.StatusTooManyRequests:
					refused.Add(1)
				}
			}
		})
	}
	all.Wait()
	if most.Load() > bound || served.Load() == 0 || served.Load()+refused.Load() != 160 {
		t.Errorf("%d at once, %d served, %d refused", most.Load(), served.Load(), refused.Load())
	}
	eventually(t, "the places are free", func() bool { return r.server.Busy("a") == 0 })
}

// TestSlowLimitStoreDoesNotDelayAnswers has a store that hangs while an answer's usage is recorded: the client gets its whole answer meanwhile.
func TestSlowLimitStoreDoesNotDelayAnswers(t *testing.T) {
	hold := make(chan struct{})
	r := newRig(t, setup{tenants: func(base *url.URL) []*proxy.Tenant {
		tenants := bounded(limit.Tenant{Tokens: 1000})(base)
		tenants[0].Draw = func(_ string, _, _ int, owed bool) (time.Duration, bool) {
			if owed {
				<-hold
			}
			return 0, true
		}
		return tenants
	}})
	r.wantServed(hello)
	close(hold)
}

// TestLimitsOutliveAReload swaps the configuration. What a tenant has taken is kept, and the new limits apply to it.
func TestLimitsOutliveAReload(t *testing.T) {
	var clock stopped
	r := newRig(t, setup{tenants: bounded(limit.Tenant{Requests: 2}), now: clock.now})
	swap := func(limits limit.Tenant) {
		t.Helper()
		base, err := url.Parse(r.up.URL() + "/v1")
		must(t, err)
		live := r.live
		live.Tenants = bounded(limits)(base)
		r.server.Swap(live)
	}
	r.wantServed(hello)
	r.wantServed(hello)
	swap(limit.Tenant{Requests: 2})
	r.wantLimited(hello, "requests_per_minute_exceeded")
	swap(limit.Tenant{Requests: 3})
	r.wantServed(hello)
	r.wantLimited(hello, "requests_per_minute_exceeded")
	swap(limit.Tenant{})
	r.wantServed(hello)
}

// TestReloadsLeaveNothingRunning: reloads start no goroutine that stays.
func TestReloadsLeaveNothingRunning(t *testing.T) {
	r := newRig(t, setup{})
	before := runtime.NumGoroutine()
	for range 100 {
		r.server.Swap(r.live)
	}
	if more := runtime.NumGoroutine() - before; more > 50 {
		t.Errorf("after 100 reloads there are %d goroutines more", more)
	}
	r.wantServed(hello)
}

// failure is an error of an upstream.
func failure(status int) fakeupstream.Answer {
	return fakeupstream.Answer{Raw: &fakeupstream.Raw{Status: status, ContentType: "application/json", Body: []byte(`{"error":{}}`)}}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx := guard(t)
	for !so() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain until %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// sendAs sends a complete chat completion request of a tenant.
func (w *wire) sendAs(key, body string) {
	w.t.Helper()
	w.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		chatPath, key, len(body), body))
}
