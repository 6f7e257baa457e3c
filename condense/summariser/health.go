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

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/lru"
)

// The duration of a cooldown after a failure. It doubles with each further failure, up to the longest. A server that could not be reached may be
// starting, and is tried again sooner at first.
const (
	FirstCooldown    = 30 * time.Second
	FirstUnreachable = 2 * time.Second
	LongestCooldown  = 10 * time.Minute
)

// suspectLasts is how long a failure of one thread's call can be confirmed by another thread's.
const suspectLasts = LongestCooldown

// maxRemembered is the number of failing servers and threads to remember.
const maxRemembered = 8192

// Health remembers for which models and for which threads calls fail, and imposes cooldowns. A server's failure counts for the
// combination of endpoint, model and credential, so that one client's key or model does not affect other clients. One that the thread's
// content may have caused counts for the thread at this server, until a second thread fails there too. An unusable answer counts for the thread
// whose history was to be summarised.
type Health struct {
	now func() time.Time

	mu        sync.Mutex
	cooldowns lru.Cache[subject, *cooldown]
	windows   lru.Cache[subject, window]
	suspects  lru.Cache[subject, suspect]
}

// suspect is the newest failure of a server that its call's content may have caused.
type suspect struct {
	thread subject
	until  time.Time
}

var _ condense.Health = (*Health)(nil)

// subject identifies a thread, or a server by URL, model and credential. It is a hash, so that no keys are kept in memory, and no
// names of unbounded length that clients choose.
type subject [sha256.Size]byte

// A window that a server reported applies for windowLasts. Smaller ones than minWindow, in tokens, are not believed.
const (
	windowLasts = 6 * time.Hour
	minWindow   = 512
)

// window is a context window by which a server refused a prompt.
type window struct {
	tokens int
	until  time.Time
}

// cooldown is the state of a subject that has failed at least once since it last succeeded.
type cooldown struct {
	next    time.Duration // the duration of the next cooldown
	until   time.Time
	probing bool   // an attempt after the cooldown is under way
	missing bool   // the model or the credential does not exist
	problem string // for operators, if the model is configured
}

// NewHealth returns a Health without any cooldowns. now is the clock.
func NewHealth(now func() time.Time) *Health {
	cooldowns := lru.New[subject, *cooldown](maxRemembered)
	windows := lru.New[subject, window](maxRemembered)
	return &Health{now: now, cooldowns: cooldowns, windows: windows, suspects: lru.New[subject, suspect](maxRemembered)}
}

func subjectOf(parts ...string) subject { return sha256.Sum256(fmt.Appendf(nil, "%q", parts)) }

func serverOf(a condense.Attempt) subject {
	w := a.Endpoint.Way
	return subjectOf(a.Endpoint.BaseURL, w.API, w.Path, a.Model, a.Endpoint.APIKey, w.Headers)
}

func threadOf(a condense.Attempt) subject { return subjectOf(a.Thread) }

// pairOf identifies a thread at a server.
func pairOf(a condense.Attempt) subject {
	server, thread := serverOf(a), threadOf(a)
	return subjectOf(string(server[:]), string(thread[:]))
}

func subjectsOf(a condense.Attempt) [3]subject {
	return [...]subject{serverOf(a), threadOf(a), pairOf(a)}
}

func (h *Health) Ready(a condense.Attempt) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.allReady(a)
}

// allReady reports whether nothing that the attempt concerns is cooling down.
func (h *Health) allReady(a condense.Attempt) bool {
	for _, s := range subjectsOf(a) {
		if !h.ready(s) {
			return false
		}
	}
	return true
}

func (h *Health) Missing(a condense.Attempt) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	missing := func(s subject) bool {
		c, ok := h.cooldowns.Get(s)
		return ok && c.missing && !h.ready(s)
	}
	return missing(serverOf(a)) || missing(pairOf(a))
}

func (h *Health) Begin(a condense.Attempt) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.allReady(a) {
		return false
	}
	for _, s := range subjectsOf(a) {
		if c, ok := h.cooldowns.Get(s); ok {
			c.probing = true
		}
	}
	return true
}

func (h *Health) Window(a condense.Attempt) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	w, ok := h.windows.Get(serverOf(a))
	if !ok || h.now().After(w.until) {
		return 0
	}
	return w.tokens
}

func (h *Health) LearnWindow(a condense.Attempt, tokens int) {
	if tokens < minWindow {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.windows.Add(serverOf(a), window{tokens: tokens, until: h.now().Add(windowLasts)})
}

func (h *Health) End(a condense.Attempt, err error) { h.end(a, err) }

// end is End, and reports whether the server has failed.
func (h *Health) end(a condense.Attempt, err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	server, thread := blame(err)
	pair := server
	if server == suspected {
		server, pair = h.confirm(a), failed
	}
	call, _ := errors.AsType[*condense.CallError](err)
	first := FirstCooldown
	if call != nil && call.Kind == condense.FailureUnreachable {
		first = FirstUnreachable
	}
	if c := h.record(serverOf(a), server, first); c != nil {
		c.missing = call.Missing()
		if a.Configured {
			c.problem = fmt.Sprintf("%s at %s: %s", a.Model, Shown(a.Endpoint.BaseURL), call.Kind)
		}
	}
	if server == succeeded {
		h.suspects.Remove(serverOf(a))
	}
	if server == failed {
		pair = unknown // the server's cooldown holds for the thread as well
	}
	if c := h.record(pairOf(a), pair, first); c != nil {
		c.missing = call.Missing()
	}
	h.record(threadOf(a), thread, first)
	return server == failed
}

// confirm returns the outcome for the server of a failure that the content may have caused: failed, if the server has failed since it last
// succeeded, or another thread's call has failed so recently.
func (h *Health) confirm(a condense.Attempt) outcome {
	server, thread := serverOf(a), threadOf(a)
	_, down := h.cooldowns.Get(server)
	earlier, known := h.suspects.Get(server)
	if down || known && earlier.thread != thread && h.now().Before(earlier.until) {
		return failed
	}
	h.suspects.Add(server, suspect{thread, h.now().Add(suspectLasts)})
	return unknown
}

// ready reports whether a subject is not cooling down, and no probe of it is under way.
func (h *Health) ready(s subject) bool {
	c, ok := h.cooldowns.Get(s)
	return !ok || !c.probing && !h.now().Before(c.until)
}

// record records the outcome of an attempt for a subject. After a failure it returns the cooldown, which is at least first. Failures of attempts
// that were already under way when a cooldown began do not extend it.
func (h *Health) record(s subject, o outcome, first time.Duration) *cooldown {
	if o == succeeded {
		h.cooldowns.Remove(s)
		return nil
	}
	c, ok := h.cooldowns.Get(s)
	if !ok {
		if o != failed {
			return nil
		}
		c = &cooldown{}
		h.cooldowns.Add(s, c)
	}
	c.probing = false
	if o != failed {
		return nil
	}
	if now := h.now(); !now.Before(c.until) {
		lasts := max(c.next, first)
		c.until = now.Add(lasts)
		c.next = min(2*lasts, LongestCooldown)
	}
	return c
}

// Troubled describes the configured models that are cooling down, and why.
func (h *Health) Troubled() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, c := range h.cooldowns.Values() {
		if c.problem != "" && h.now().Before(c.until) {
			all = append(all, c.problem)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Shown returns a URL without the parts that may be secret.
func Shown(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return "an invalid URL"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Tenant is one tenant's view of a Health. It shares the cooldowns, and knows which server last failed for this tenant.
type Tenant struct {
	*Health
	last atomic.Pointer[subject]
}

func (t *Tenant) End(a condense.Attempt, err error) {
	if t.end(a, err) {
		t.last.Store(new(serverOf(a)))
	}
}

// Cooling reports whether the server that last failed for this tenant is cooling down.
func (t *Tenant) Cooling() bool {
	s := t.last.Load()
	if s == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.ready(*s)
}

// Tenant returns a tenant's view of h.
func (h *Health) Tenant() *Tenant { return &Tenant{Health: h} }

// outcome is the outcome of an attempt for its server or its thread.
type outcome int

const (
	unknown outcome = iota
	succeeded
	failed
	suspected // of a server: the content may be the cause
)

// codeModelNotFound is the code of servers that say with a 404 that they do not have the model.
const codeModelNotFound = "model_not_found"

// blame attributes an error. The server has failed if it cannot be reached, is overloaded, refuses the credential or says that it does not have the
// model. If it answers 404 without saying so, or fails otherwise, it is suspected: some servers answer so to certain contents, and gateways to
// certain routes. The thread has failed if its answer is unusable or its prompt was refused. A cancelled attempt says nothing about either.
func blame(err error) (server, thread outcome) {
	if err == nil {
		return succeeded, succeeded
	}
	if bad, ok := errors.AsType[*condense.SummaryError](err); ok {
		switch bad.Kind {
		case condense.FaultTooLarge: // no call was made
			return unknown, unknown
		case condense.FaultCrowded: // no call was made
			return unknown, failed
		}
		return succeeded, failed
	}
	call, ok := errors.AsType[*condense.CallError](err)
	ours := []condense.Failure{condense.FailureDeadline, condense.FailureUntrusted, condense.FailureLimited}
	switch {
	case errors.Is(err, context.Canceled), ok && slices.Contains(ours, call.Kind), !ok && errors.Is(err, context.DeadlineExceeded):
		return unknown, unknown
	case !ok, call.Kind == condense.FailureMalformed, call.Kind == condense.FailureRejected && !call.Missing():
		return succeeded, failed
	case call.Status == http.StatusForbidden: // some servers refuse certain contents with it
		return succeeded, failed
	case call.Missing() && call.Status == http.StatusNotFound && call.Code != codeModelNotFound, call.Status >= http.StatusInternalServerError && !overloaded(call.Status):
		return suspected, unknown
	}
	return failed, unknown
}

// overloaded reports whether a status says that a server or the one behind it is not available, whatever it is asked.
func overloaded(status int) bool {
	return slices.Contains([]int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, 529}, status)
}
