package proxy

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

// gate counts what a tenant has taken of its limits. It is kept when the configuration is reloaded.
type gate struct {
	active   atomic.Int64 // requests under way
	requests limit.Bucket
	tokens   limit.Bucket
}

func (t *Tenant) requests() limit.Share {
	return limit.Share{Bucket: &t.gate.requests, Name: t.Name + ":requests", Draw: t.Draw}
}

func (t *Tenant) tokens() limit.Share {
	return limit.Share{Bucket: &t.gate.tokens, Name: t.Name + ":tokens", Draw: t.Draw}
}

// admit checks the tenant's limits. If ok is false, e is the client's answer.
func (r *request) admit() (e apiError, ok bool) {
	limits, now := &r.tenant.Limits, r.server.o.Now
	if !r.tenant.gate.enter(limits.Concurrent) {
		return r.limited(time.Second, "concurrent_requests_exceeded",
			"requests at the same time: wait for one to end", limits.Concurrent), false
	}
	r.lease.admitted = true
	defer func() {
		if !ok { // give the place back at once: the body of a refused request may take long to arrive
			r.leave()
		}
	}()
	if limits.Requests > 0 {
		if wait, ok := r.tenant.requests().Take(now(), 1, limits.Requests); !ok {
			return r.limited(wait, "requests_per_minute_exceeded", "requests a minute", limits.Requests), false
		}
	}
	if limits.Tokens > 0 {
		if wait := r.tenant.tokens().Full(now(), limits.Tokens); wait > 0 {
			return r.outOfTokens(wait), false
		}
	}
	return e, true
}

// enter takes one of limit places, and reports whether one was free; 0 is no limit. A request that is refused is never counted, not
// even for a moment, in which another one would be refused as well.
func (g *gate) enter(limit int) bool {
	for {
		n := g.active.Load()
		if limit > 0 && n >= int64(limit) {
			return false
		}
		if g.active.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave gives back the request's place, once.
func (r *request) leave() {
	if r.lease.admitted {
		r.lease.admitted = false
		r.tenant.gate.active.Add(-1)
	}
}

func (r *request) outOfTokens(wait time.Duration) apiError {
	return r.limited(wait, "tokens_per_minute_exceeded", "tokens a minute", r.tenant.Limits.Tokens)
}

// limited returns the answer to a request that exceeds a limit of n.
func (r *request) limited(wait time.Duration, code, what string, n int) apiError {
	whose := "this key's tenant"
	if r.tenant.Anonymous {
		whose = "all clients together"
	}
	return apiError{
		Status: http.StatusTooManyRequests, Type: typeLimit, Code: code,
		Retry:   int((wait + time.Second - 1) / time.Second),
		Message: fmt.Sprintf("The limit of %s is %d %s. Try again after the time in Retry-After.", whose, n, what),
	}
}
