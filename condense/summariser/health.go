package summariser

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// How long what failed is left alone: doubling from the first to the longest with each further failure.
const (
	FirstCooldown   = 30 * time.Second
	LongestCooldown = 10 * time.Minute
)

// remembered is how many servers and threads in trouble are remembered each.
const remembered = 4096

// Health remembers which models and which threads' summaries fail. A failure of the server belongs to the endpoint, the model and
// the credential together, so what one client's key or model does costs no other client anything. An answer that is no good belongs
// to the thread whose history was to be summarised.
type Health struct {
	now func() time.Time

	mu      sync.Mutex
	servers *simplelru.LRU[server, *trouble]
	threads *simplelru.LRU[string, *trouble]
}

var _ condense.Health = (*Health)(nil)

// server is a hash of URL, model and credential: no key is kept, and no name of any length that a client chose.
type server [sha256.Size]byte

// trouble is what failed at least once since it last succeeded.
type trouble struct {
	wait    time.Duration // the next cooldown
	until   time.Time
	probed  bool   // an attempt after the cooldown is under way
	missing bool   // the model or the credential is not there
	says    string // what and why, of a configured model; empty of others
}

// NewHealth gives a Health that knows of no trouble. now is the clock.
func NewHealth(now func() time.Time) (*Health, error) {
	servers, err := simplelru.NewLRU[server, *trouble](remembered, nil)
	if err != nil {
		return nil, fmt.Errorf("new health: %w", err)
	}
	threads, err := simplelru.NewLRU[string, *trouble](remembered, nil)
	if err != nil {
		return nil, fmt.Errorf("new health: %w", err)
	}
	return &Health{now: now, servers: servers, threads: threads}, nil
}

func serverOf(a condense.Attempt) server {
	var parts []byte
	w := a.Endpoint.Way
	for _, part := range [...]string{a.Endpoint.BaseURL, w.API, w.Path, a.Model, a.Endpoint.APIKey, w.Headers} {
		sum := sha256.Sum256([]byte(part))
		parts = append(parts, sum[:]...)
	}
	return sha256.Sum256(parts)
}

// Ready implements condense.Health.
func (h *Health) Ready(a condense.Attempt) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	return ready(h.servers, serverOf(a), now) && ready(h.threads, a.Thread, now)
}

// Missing implements condense.Health.
func (h *Health) Missing(a condense.Attempt) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := serverOf(a)
	t, ok := h.servers.Get(s)
	return ok && t.missing && !ready(h.servers, s, h.now())
}

// Begin implements condense.Health.
func (h *Health) Begin(a condense.Attempt) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, s := h.now(), serverOf(a)
	if !ready(h.servers, s, now) || !ready(h.threads, a.Thread, now) {
		return false
	}
	probe(h.servers, s)
	probe(h.threads, a.Thread)
	return true
}

// End implements condense.Health.
func (h *Health) End(a condense.Attempt, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, s := h.now(), serverOf(a)
	switch blame(err) {
	case noBlame:
		release(h.servers, s)
		release(h.threads, a.Thread)
	case serverBlame:
		failed(h.servers, s, now)
		if t, ok := h.servers.Get(s); ok {
			call, _ := errors.AsType[*condense.CallError](err)
			t.missing = call.Missing()
			if a.Configured {
				t.says = fmt.Sprintf("%s at %s: %s", a.Model, Shown(a.Endpoint.BaseURL), call.Kind)
			}
		}
		release(h.threads, a.Thread)
	case unaskedBlame:
		release(h.servers, s)
		failed(h.threads, a.Thread, now)
	case threadBlame:
		h.servers.Remove(s)
		failed(h.threads, a.Thread, now)
	default:
		h.servers.Remove(s)
		h.threads.Remove(a.Thread)
	}
}

// Troubled says which configured models are left alone at present, and why.
func (h *Health) Troubled() (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	for _, s := range h.servers.Keys() {
		if t, ok := h.servers.Peek(s); ok && t.says != "" && now.Before(t.until) {
			all = append(all, t.says)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Shown is a URL without what may be secret in it.
func Shown(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return "a URL that cannot be read"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Tenant is one tenant's use of a Health: the same knowledge, and whether the server that last failed for this tenant is left alone.
type Tenant struct {
	*Health
	last atomic.Pointer[server]
}

// End implements condense.Health.
func (t *Tenant) End(a condense.Attempt, err error) {
	t.Health.End(a, err)
	if blame(err) == serverBlame {
		s := serverOf(a)
		t.last.Store(&s)
	}
}

// Cooling reports whether the server that last failed for this tenant is left alone.
func (t *Tenant) Cooling() bool {
	s := t.last.Load()
	if s == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return !ready(t.servers, *s, t.now())
}

// Tenant gives the use of h by one tenant.
func (h *Health) Tenant() *Tenant { return &Tenant{Health: h} }

// ready reports whether there is no trouble with k, or its cooldown is over and no attempt is under way.
func ready[K comparable](all *simplelru.LRU[K, *trouble], k K, now time.Time) bool {
	t, ok := all.Get(k)
	return !ok || !t.probed && !now.Before(t.until)
}

func probe[K comparable](all *simplelru.LRU[K, *trouble], k K) {
	if t, ok := all.Get(k); ok {
		t.probed = true
	}
}

func release[K comparable](all *simplelru.LRU[K, *trouble], k K) {
	if t, ok := all.Get(k); ok {
		t.probed = false
	}
}

// failed begins a cooldown. Failures of attempts that were already under way when it began do not prolong it.
func failed[K comparable](all *simplelru.LRU[K, *trouble], k K, now time.Time) {
	t, ok := all.Get(k)
	if !ok {
		t = &trouble{wait: FirstCooldown}
		all.Add(k, t)
	}
	t.probed = false
	if now.Before(t.until) {
		return
	}
	t.until = now.Add(t.wait)
	t.wait = min(2*t.wait, LongestCooldown)
}

// Whose failure an error is.
const (
	success = iota
	noBlame
	serverBlame
	threadBlame
	unaskedBlame // the thread's, and the server was not asked
)

// notAsked are the failures that say nothing of the server.
func notAsked() []condense.Failure {
	return []condense.Failure{condense.FailureDeadline, condense.FailureUntrusted, condense.FailureLimited}
}

// blame tells whose failure an error is: the server's if it cannot be reached, is overloaded or does not take the credential or
// the model, the thread's if the answer is no good or what was asked was refused. An attempt that was given up says nothing.
func blame(err error) int {
	if err == nil {
		return success
	}
	if bad, ok := errors.AsType[*condense.SummaryError](err); ok {
		switch bad.Kind { // it was never asked
		case condense.FaultTooLarge:
			return noBlame
		case condense.FaultCrowded:
			return unaskedBlame
		}
		return threadBlame
	}
	call, ok := errors.AsType[*condense.CallError](err)
	switch {
	case errors.Is(err, context.Canceled), ok && slices.Contains(notAsked(), call.Kind), !ok && errors.Is(err, context.DeadlineExceeded):
		return noBlame
	case !ok, call.Kind == condense.FailureMalformed, call.Kind == condense.FailureRejected && !call.Missing():
		return threadBlame
	case call.Status == http.StatusForbidden: // some refuse single contents so
		return threadBlame
	}
	return serverBlame
}
