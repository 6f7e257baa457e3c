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

// remembered is how many servers and threads in trouble are remembered.
const remembered = 8192

// Health remembers which models and which threads' summaries fail. A failure of the server belongs to the endpoint, the model and
// the credential together, so what one client's key or model does costs no other client anything. An answer that is no good belongs
// to the thread whose history was to be summarised.
type Health struct {
	now func() time.Time

	mu       sync.Mutex
	troubles *simplelru.LRU[subject, *trouble]
}

var _ condense.Health = (*Health)(nil)

// subject is a hash of a thread, or of a server's URL, model and credential: no key is kept, and no name of any length that a client chose.
type subject [sha256.Size]byte

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
	troubles, err := simplelru.NewLRU[subject, *trouble](remembered, nil)
	if err != nil {
		return nil, fmt.Errorf("new health: %w", err)
	}
	return &Health{now: now, troubles: troubles}, nil
}

func subjectOf(parts ...string) subject {
	var sums []byte
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part))
		sums = append(sums, sum[:]...)
	}
	return sha256.Sum256(sums)
}

func serverOf(a condense.Attempt) subject {
	w := a.Endpoint.Way
	return subjectOf(a.Endpoint.BaseURL, w.API, w.Path, a.Model, a.Endpoint.APIKey, w.Headers)
}

func threadOf(a condense.Attempt) subject { return subjectOf(a.Thread) }

// Ready implements condense.Health.
func (h *Health) Ready(a condense.Attempt) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ready(serverOf(a)) && h.ready(threadOf(a))
}

// Missing implements condense.Health.
func (h *Health) Missing(a condense.Attempt) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := serverOf(a)
	t, ok := h.troubles.Get(s)
	return ok && t.missing && !h.ready(s)
}

// Begin implements condense.Health.
func (h *Health) Begin(a condense.Attempt) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, thread := serverOf(a), threadOf(a)
	if !h.ready(s) || !h.ready(thread) {
		return false
	}
	for _, of := range [...]subject{s, thread} {
		if t, ok := h.troubles.Get(of); ok {
			t.probed = true
		}
	}
	return true
}

// End implements condense.Health.
func (h *Health) End(a condense.Attempt, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server, thread := blame(err)
	if t := h.note(serverOf(a), server); t != nil {
		call, _ := errors.AsType[*condense.CallError](err)
		t.missing = call.Missing()
		if a.Configured {
			t.says = fmt.Sprintf("%s at %s: %s", a.Model, Shown(a.Endpoint.BaseURL), call.Kind)
		}
	}
	h.note(threadOf(a), thread)
}

// ready reports whether there is no trouble, or its cooldown is over and no attempt is under way.
func (h *Health) ready(of subject) bool {
	t, ok := h.troubles.Get(of)
	return !ok || !t.probed && !h.now().Before(t.until)
}

// note takes what an attempt says of a subject, and gives the trouble if it failed. A failure begins a cooldown. Those of attempts that
// were already under way when it began do not prolong it.
func (h *Health) note(of subject, o outcome) *trouble {
	t, ok := h.troubles.Get(of)
	switch {
	case o == works:
		h.troubles.Remove(of)
		return nil
	case !ok && o == fails:
		t = &trouble{wait: FirstCooldown}
		h.troubles.Add(of, t)
	case !ok:
		return nil
	}
	t.probed = false
	if o != fails {
		return nil
	}
	if now := h.now(); !now.Before(t.until) {
		t.until = now.Add(t.wait)
		t.wait = min(2*t.wait, LongestCooldown)
	}
	return t
}

// Troubled says which configured models are left alone at present, and why.
func (h *Health) Troubled() (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.troubles.Values() {
		if t.says != "" && h.now().Before(t.until) {
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
	last atomic.Pointer[subject]
}

// End implements condense.Health.
func (t *Tenant) End(a condense.Attempt, err error) {
	t.Health.End(a, err)
	if server, _ := blame(err); server == fails {
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
	return !t.ready(*s)
}

// Tenant gives the use of h by one tenant.
func (h *Health) Tenant() *Tenant { return &Tenant{Health: h} }

// outcome is what an attempt says of its server, or of its thread.
type outcome int

const (
	unknown outcome = iota
	works
	fails
)

// notAsked are the failures that say nothing of the server.
func notAsked() []condense.Failure {
	return []condense.Failure{condense.FailureDeadline, condense.FailureUntrusted, condense.FailureLimited}
}

// blame tells whose failure an error is: the server's if it cannot be reached, is overloaded or does not take the credential or
// the model, the thread's if the answer is no good or what was asked was refused. An attempt that was given up says nothing.
func blame(err error) (server, thread outcome) {
	if err == nil {
		return works, works
	}
	if bad, ok := errors.AsType[*condense.SummaryError](err); ok {
		switch bad.Kind { // it was never asked
		case condense.FaultTooLarge:
			return unknown, unknown
		case condense.FaultCrowded:
			return unknown, fails
		}
		return works, fails
	}
	call, ok := errors.AsType[*condense.CallError](err)
	switch {
	case errors.Is(err, context.Canceled), ok && slices.Contains(notAsked(), call.Kind), !ok && errors.Is(err, context.DeadlineExceeded):
		return unknown, unknown
	case !ok, call.Kind == condense.FailureMalformed, call.Kind == condense.FailureRejected && !call.Missing():
		return works, fails
	case call.Status == http.StatusForbidden: // some refuse single contents so
		return works, fails
	}
	return fails, unknown
}
