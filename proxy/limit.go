package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// gate is what a tenant has taken. It outlives a configuration, so that a reload does not set a tenant free.
type gate struct {
	busy     atomic.Int64
	requests limit.Bucket
	tokens   limit.Bucket
}

// adopt gives each tenant the gate that it had in an earlier configuration, or a new one.
func (t *Tenants) adopt(earlier *live) {
	gates := map[string]*gate{}
	if earlier != nil {
		for _, tenant := range earlier.tenants.tenants {
			gates[tenant.Name] = tenant.gate
		}
	}
	for _, tenant := range t.tenants {
		if tenant.gate == nil {
			tenant.gate = gates[tenant.Name]
		}
		if tenant.gate == nil {
			tenant.gate = &gate{}
		}
	}
}

func (t *Tenant) requests() limit.Share {
	return limit.Share{Bucket: &t.gate.requests, Name: t.Name + ":requests", Draw: t.Draw}
}

func (t *Tenant) tokens() limit.Share {
	return limit.Share{Bucket: &t.gate.tokens, Name: t.Name + ":tokens", Draw: t.Draw}
}

// admit lets a request in, or says why not. One that is let in must leave.
func (r *request) admit() *apiError {
	limits, g := &r.tenant.Limits, r.tenant.gate
	if !g.enter(limits.Concurrent) {
		return r.limited("concurrent", time.Second, "concurrent_requests_exceeded",
			"requests at the same time: wait for the end of one", limits.Concurrent)
	}
	if limits.Requests > 0 {
		if wait, ok := r.tenant.requests().Take(r.server.o.Now(), 1, limits.Requests); !ok {
			g.leave()
			return r.limited("requests", wait, "requests_per_minute_exceeded", "requests a minute", limits.Requests)
		}
	}
	if limits.Tokens > 0 {
		if wait := r.tenant.tokens().Full(r.server.o.Now(), limits.Tokens); wait > 0 {
			g.leave()
			return r.limited("tokens", wait, "tokens_per_minute_exceeded", "tokens a minute", limits.Tokens)
		}
	}
	return nil
}

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

func (g *gate) leave() { g.busy.Add(-1) }

// charge takes the tokens of what is forwarded from the tenant's minute. They are those of the count; what cannot be
// counted, because the store is away, is guessed by its size. Paths that are passed through cost none, nor do questions for a count.
func (r *request) charge() error {
	perMinute := r.tenant.Limits.Tokens
	if perMinute == 0 || r.asked.dialect == nil || r.asked.counts {
		return nil
	}
	r.uncharge() // it was sent before, in vain
	n := len(r.body.bytes) / 4
	if r.seen.record.Unread == unreadEncoding {
		n = len(r.body.bytes) // text is about four times as long as it is compressed
	}
	if r.turn != nil {
		r.orAsItCame(func() { n = r.turn.Adjust(r.turn.Sent().Tokens) })
	}
	n = max(n, 1)
	if wait, ok := r.tenant.tokens().Take(r.server.o.Now(), n, perMinute); !ok {
		return r.limited("tokens", wait, "tokens_per_minute_exceeded", "tokens a minute", perMinute)
	}
	r.charged = n
	return nil
}

func (r *request) uncharge() {
	if r.charged > 0 {
		r.tenant.tokens().Correct(-r.charged, r.tenant.Limits.Tokens)
		r.charged = 0
	}
}

// mostCharged bounds what an upstream may say that a request took, in tokens.
const mostCharged = 1 << 30

// settle corrects a charge by what upstream says it took. What upstream refused took nothing.
func (r *request) settle(status int, answer dialect.Answer) {
	if r.charged == 0 {
		return
	}
	took := r.charged
	if u := answer.Usage; u != nil {
		took = min(max(u.Input, 0), mostCharged) + min(max(u.Output, 0), mostCharged)
	} else if status >= http.StatusBadRequest {
		took = 0
	}
	r.tenant.tokens().Correct(took-r.charged, r.tenant.Limits.Tokens)
	r.charged = 0
}

// giveBack takes back the charge of a request that upstream never got. One that was not answered in time, or whose client
// left, may have cost what was charged.
func (r *request) giveBack(err error) {
	var e *apiError
	if errors.As(err, &e) && e.Code == codeUnreachable {
		r.uncharge()
		r.finish(session.Usage{})
	}
}

// reader reads the request's body: its tenant may send less than others.
func (r *request) reader() *bodyReader {
	br := r.server.reader
	if most := int64(r.tenant.Limits.Body); most > 0 {
		br.limit = min(br.limit, most)
	}
	br.client = r.client()
	return &br
}

// countRefused counts a body that was too large for its tenant, or too much for its client.
func (r *request) countRefused(err error) {
	e, ok := errors.AsType[*apiError](err)
	switch {
	case ok && e.Code == codeShare:
		r.seen.record.Limit = "share"
	case ok && e.Status == http.StatusRequestEntityTooLarge && r.tenant.Limits.Body > 0:
		r.seen.record.Limit = "body"
	}
}

// limited is the answer to a request that is one too many.
func (r *request) limited(limit string, wait time.Duration, code, what string, n int) *apiError {
	r.seen.record.Limit = limit
	return &apiError{
		Status: http.StatusTooManyRequests, Type: typeLimit, Code: code,
		Retry:   int((wait + time.Second - 1) / time.Second),
		Message: fmt.Sprintf("This key's limit is %d %s. Try again as Retry-After says.", n, what),
	}
}
