package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

// gate is what a tenant has taken. It outlives a configuration, so that a reload does not set a tenant free.
type gate struct {
	busy     atomic.Int64
	requests limit.Bucket
	tokens   limit.Bucket
}

func (t *Tenant) requests() limit.Share {
	return limit.Share{Bucket: &t.gate.requests, Name: t.Name + ":requests", Draw: t.Draw}
}

func (t *Tenant) tokens() limit.Share {
	return limit.Share{Bucket: &t.gate.tokens, Name: t.Name + ":tokens", Draw: t.Draw}
}

// admit lets a request in, or says why not.
func (r *request) admit() (e apiError, ok bool) {
	limits, now := &r.tenant.Limits, r.server.o.Now
	if !r.tenant.gate.enter(limits.Concurrent) {
		return r.limited("concurrent", time.Second, "concurrent_requests_exceeded",
			"requests at the same time: wait for the end of one", limits.Concurrent), false
	}
	r.lease.admitted = true
	defer func() {
		if !ok { // its body may take long to come
			r.leave()
		}
	}()
	if limits.Requests > 0 {
		if wait, ok := r.tenant.requests().Take(now(), 1, limits.Requests); !ok {
			return r.limited("requests", wait, "requests_per_minute_exceeded", "requests a minute", limits.Requests), false
		}
	}
	if limits.Tokens > 0 {
		if wait := r.tenant.tokens().Full(now(), limits.Tokens); wait > 0 {
			return r.outOfTokens(wait), false
		}
	}
	return e, true
}

// enter takes a place of so many, 0: any number. It counts none that it does not give: that could refuse another request.
func (g *gate) enter(limit int) bool {
	for {
		n := g.busy.Load()
		if limit > 0 && n >= int64(limit) {
			return false
		}
		if g.busy.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// leave gives back the request's place among its tenant's.
func (r *request) leave() {
	if r.lease.admitted {
		r.lease.admitted = false
		r.tenant.gate.busy.Add(-1)
	}
}

func (r *request) outOfTokens(wait time.Duration) apiError {
	return r.limited("tokens", wait, "tokens_per_minute_exceeded", "tokens a minute", r.tenant.Limits.Tokens)
}

// limited is the answer to a request that is one too many.
func (r *request) limited(limit string, wait time.Duration, code, what string, n int) apiError {
	r.seen.record.Limit = limit
	return apiError{
		Status: http.StatusTooManyRequests, Type: typeLimit, Code: code,
		Retry:   int((wait + time.Second - 1) / time.Second),
		Message: fmt.Sprintf("This key's limit is %d %s. Try again as Retry-After says.", n, what),
	}
}

// countRefused counts a body that was too large for its tenant, or too much for its client.
func (r *request) countRefused(err error) {
	e, ok := errors.AsType[apiError](err)
	switch {
	case ok && e.Code == codeShare:
		r.seen.record.Limit = "share"
	case ok && e.Status == http.StatusRequestEntityTooLarge && r.tenant.Limits.Body > 0:
		r.seen.record.Limit = "body"
	}
}
