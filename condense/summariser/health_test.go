package summariser_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
)

// clock is a clock that a test sets.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newHealth(t *testing.T) (*summariser.Health, *clock) {
	t.Helper()
	c := &clock{now: time.Unix(1700000000, 0)}
	h := summariser.NewHealth(c.Now)
	return h, c
}

func attempt(key, model, thread string) condense.Attempt {
	return condense.Attempt{Endpoint: condense.Endpoint{BaseURL: "http://up/v1", APIKey: key}, Model: model, Thread: thread}
}

func failing(kind condense.Failure, status int) error {
	return fmt.Errorf("condense llm: %w", &condense.CallError{Kind: kind, Status: status})
}

// TestWhoseTrouble checks for each failure which calls it blocks: those of the same endpoint, model and credential, or only those of
// its own thread.
func TestWhoseTrouble(t *testing.T) {
	own := attempt("key-a", "m", "thread-1")
	for name, c := range map[string]struct {
		err            error
		thread, server bool // blocked
	}{
		"success":        {nil, false, false},
		"unreachable":    {failing(condense.FailureUnreachable, 0), true, true},
		"timeout":        {failing(condense.FailureTimeout, 0), true, true},
		"rate limited":   {failing(condense.FailureRateLimited, 429), true, true},
		"server error":   {failing(condense.FailureServer, 503), true, true},
		"denied":         {failing(condense.FailureDenied, 401), true, true},
		"forbidden":      {failing(condense.FailureDenied, 403), true, false},
		"no such model":  {failing(condense.FailureRejected, 404), true, false},
		"failure":        {failing(condense.FailureServer, 500), true, false},
		"failed answer":  {failing(condense.FailureServer, 0), true, true},
		"bad gateway":    {failing(condense.FailureServer, 502), true, true},
		"rejected":       {failing(condense.FailureRejected, 400), true, false},
		"malformed":      {failing(condense.FailureMalformed, 200), true, false},
		"refused":        {&condense.SummaryError{Kind: condense.FaultRefused}, true, false},
		"empty":          {&condense.SummaryError{Kind: condense.FaultEmpty}, true, false},
		"too large":      {&condense.SummaryError{Kind: condense.FaultTooLarge}, false, false},
		"crowded":        {&condense.SummaryError{Kind: condense.FaultCrowded}, true, false},
		"client is gone": {&condense.CallError{Kind: condense.FailureCanceled, Err: context.Canceled}, false, false},
	} {
		h, _ := newHealth(t)
		h.Begin(own)
		h.End(own, c.err)
		if got := !h.Ready(own); got != c.thread {
			t.Errorf("%s: the thread is blocked: %v", name, got)
		}
		if got := !h.Ready(attempt("key-a", "m", "thread-2")); got != c.server {
			t.Errorf("%s: another thread is blocked: %v", name, got)
		}
		for _, other := range []condense.Attempt{attempt("key-b", "m", "thread-3"), attempt("key-a", "n", "thread-4")} {
			if !h.Ready(other) {
				t.Errorf("%s: %+v is blocked", name, other)
			}
		}
	}
}

// TestWindow: a reported window applies to its endpoint, model and credential, for six hours. Implausible ones do not.
func TestWindow(t *testing.T) {
	h, c := newHealth(t)
	a := attempt("key", "m", "1")
	h.LearnWindow(a, 8192)
	h.LearnWindow(attempt("key", "n", "1"), 100)
	for _, want := range []struct {
		a      condense.Attempt
		tokens int
	}{{attempt("key", "m", "2"), 8192}, {attempt("other", "m", "1"), 0}, {attempt("key", "n", "1"), 0}} {
		if got := h.Window(want.a); got != want.tokens {
			t.Errorf("%+v: %d, want %d", want.a, got, want.tokens)
		}
	}
	c.now = c.now.Add(6*time.Hour + time.Second)
	if got := h.Window(a); got != 0 {
		t.Errorf("%d tokens after six hours", got)
	}
}

// TestCooldown: the cooldown doubles, failures during it do not extend it, one attempt at a time is allowed after it, and a success
// ends it.
func TestCooldown(t *testing.T) {
	h, c := newHealth(t)
	a, b := attempt("key", "m", "1"), attempt("key", "m", "2")
	down := failing(condense.FailureServer, 503)
	h.End(a, down)
	for i, want := range []time.Duration{30, 60, 120, 240, 480, 600, 600} {
		want *= time.Second
		begun := c.now
		c.now = begun.Add(want / 2)
		h.End(b, down) // a call that was under way
		c.now = begun.Add(want - 1)
		if h.Ready(b) {
			t.Errorf("failure %d: the cooldown is shorter than %s", i+1, want)
		}
		c.now = begun.Add(want)
		if !h.Ready(b) || !h.Begin(b) {
			t.Errorf("failure %d: the cooldown is longer than %s", i+1, want)
		}
		if h.Ready(a) || h.Begin(a) {
			t.Errorf("failure %d: two attempts at once", i+1)
		}
		h.End(b, down)
	}
	c.now = c.now.Add(summariser.LongestCooldown)
	if !h.Begin(a) {
		t.Fatal("the cooldown is longer than the longest")
	}
	h.End(a, context.Canceled)
	if !h.Begin(a) {
		t.Fatal("a cancelled attempt blocks others")
	}
	h.End(a, nil)
	if !h.Begin(a) || !h.Begin(b) {
		t.Error("cooling down after a success")
	}
}

// TestCrowdedTellsNothingOfTheServer: an attempt that made no call does not end the server's cooldown.
func TestCrowdedTellsNothingOfTheServer(t *testing.T) {
	h, _ := newHealth(t)
	h.End(attempt("key", "m", "1"), failing(condense.FailureServer, 503))
	h.End(attempt("key", "m", "2"), &condense.SummaryError{Kind: condense.FaultCrowded})
	if h.Ready(attempt("key", "m", "3")) {
		t.Error("the server that failed is called again")
	}
}

func TestTenantsGauge(t *testing.T) {
	h, c := newHealth(t)
	one, two := h.Tenant(), h.Tenant()
	one.End(attempt("key", "m", "1"), failing(condense.FailureServer, 503))
	if !one.Cooling() || two.Cooling() {
		t.Errorf("cooling %v and %v, want only the first", one.Cooling(), two.Cooling())
	}
	c.now = c.now.Add(summariser.FirstCooldown)
	if one.Cooling() {
		t.Error("cooling after the cooldown")
	}
}

// TestHealthIsBounded: the number of remembered threads and servers is bounded.
func TestHealthIsBounded(t *testing.T) {
	h, _ := newHealth(t)
	for i := range 10000 {
		h.End(attempt("key", "m", fmt.Sprint(i)), &condense.SummaryError{Kind: condense.FaultEmpty})
	}
	if !h.Ready(attempt("key", "m", "0")) || h.Ready(attempt("key", "m", "9999")) {
		t.Error("the oldest is remembered, or the newest is not")
	}
}

// TestTroubled: only configured models are listed, only while they cool down, and without secrets.
func TestTroubled(t *testing.T) {
	h, c := newHealth(t)
	h.End(attempt("key", "a-clients", "1"), failing(condense.FailureServer, 503))
	if got := h.Troubled(); len(got) > 0 {
		t.Error(got)
	}
	configured := attempt("key", "m", "1")
	configured.Configured, configured.Endpoint.BaseURL = true, "http://user:secret@up/v1?key=secret"
	h.End(configured, failing(condense.FailureDenied, 401))
	if got := fmt.Sprint(h.Troubled()); got != "[m at http://up/v1: denied]" {
		t.Error(got)
	}
	c.now = c.now.Add(summariser.FirstCooldown)
	if got := h.Troubled(); len(got) > 0 {
		t.Error(got)
	}
}

// TestOneThreadsFailures: a server that fails on one thread's calls again and again is called for others. Once a second thread's call fails
// there, it is called for none.
func TestOneThreadsFailures(t *testing.T) {
	for name, err := range map[string]error{"500": failing(condense.FailureServer, 500), "404": failing(condense.FailureRejected, 404)} {
		h, c := newHealth(t)
		bad, good, third, elsewhere := attempt("key", "m", "1"), attempt("key", "m", "2"), attempt("key", "m", "3"), attempt("key", "n", "1")
		ready := func(when string, want ...bool) {
			t.Helper()
			for i, a := range []condense.Attempt{bad, good, third, elsewhere} {
				if h.Ready(a) != want[i] {
					t.Errorf("%s, %s: attempt %d is ready: %t", name, when, i, !want[i])
				}
			}
		}
		for n := range 3 {
			h.End(bad, err)
			ready("one thread", false, true, true, true)
			if h.Missing(bad) != (name == "404") || h.Missing(good) {
				t.Errorf("%s: missing %t and %t", name, h.Missing(bad), h.Missing(good))
			}
			c.now = c.now.Add(summariser.FirstCooldown << n)
			if !h.Begin(bad) {
				t.Fatalf("%s: the cooldown of a thread does not end", name)
			}
		}
		h.End(bad, err)
		h.End(good, nil)
		h.End(third, err)
		ready("another succeeded in between", false, true, false, true)
		h.End(bad, err)
		ready("two threads", false, false, false, true)
		if h.Missing(good) != (name == "404") {
			t.Errorf("%s: missing %t", name, h.Missing(good))
		}
		c.now = c.now.Add(summariser.FirstCooldown)
		if !h.Begin(good) {
			t.Fatalf("%s: the cooldown of the server does not end", name)
		}
		h.End(good, err)
		ready("the probe failed", false, false, false, true)
		c.now = c.now.Add(2 * summariser.FirstCooldown)
		h.Begin(good)
		h.End(good, nil)
		ready("the probe succeeded", false, true, true, true) // the first thread has failed most often
	}
	h, c := newHealth(t)
	h.End(attempt("key", "m", "1"), failing(condense.FailureServer, 500))
	c.now = c.now.Add(summariser.LongestCooldown)
	h.End(attempt("key", "m", "2"), failing(condense.FailureServer, 500))
	if !h.Ready(attempt("key", "m", "3")) {
		t.Error("an old failure is confirmed")
	}
}

// TestUnreachableIsTriedSoon: a server that could not be reached is tried again after two seconds, and then less and less often. Another failure
// takes the usual cooldown.
func TestUnreachableIsTriedSoon(t *testing.T) {
	h, c := newHealth(t)
	a, b := attempt("key", "m", "1"), attempt("key", "m", "2")
	away := failing(condense.FailureUnreachable, 0)
	h.End(a, away)
	for _, want := range []time.Duration{2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600} {
		c.now = c.now.Add(want*time.Second - 1)
		if h.Ready(b) {
			t.Errorf("tried within %d s", want)
		}
		c.now = c.now.Add(1)
		if !h.Begin(b) {
			t.Fatalf("not tried after %d s", want)
		}
		h.End(b, away)
	}
	c.now = c.now.Add(summariser.LongestCooldown)
	h.End(a, nil)
	h.End(a, away)
	c.now = c.now.Add(summariser.FirstUnreachable)
	h.End(a, failing(condense.FailureRateLimited, 429))
	c.now = c.now.Add(summariser.FirstCooldown - 1)
	if h.Ready(b) {
		t.Error("a rate limit is tried like a server that starts")
	}
}
