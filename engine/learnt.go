package engine

import (
	"crypto/sha256"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// learnt is the context windows that upstreams showed to have, by their errors or by cutting prompts, by source, and which
// models want roles to alternate, up to where threads were answered without what was condensed, which of them upstream refused condensed,
// and for which of them a condensation is prepared. It is bounded, since a client picks the model's name, and forgets after a while:
// servers change.
type learnt struct {
	windows    *lru.Cache[source, learntWindow]
	alternates *lru.Cache[source, time.Time]     // when upstream last refused roles that do not
	toolless   *lru.Cache[source, time.Time]     // when it last refused a client tools of the proxy's own
	raw        *lru.Cache[session.ThreadID, int] // the last answer's position
	lost       *lru.Cache[session.ThreadID, int] // the last position whose sealed reasoning belongs to a history that is not shown any more
	refused    *lru.Cache[source, refusal]       // of what was changed, by thread and model

	ready   *lru.Cache[session.ThreadID, session.CondensationID] // on top of which one
	answers *lru.Cache[session.Hash, []byte]                     // that upstream keeps and the log does not have
	calls   *lru.Cache[session.ThreadID, calls]                  // the newest
}

// source names requests whose counts and windows are comparable: those of a tenant to an upstream for a model, and of one client of
// the tenant's or of all.
type source [sha256.Size]byte

type learntWindow struct {
	tokens int
	at     time.Time
	by     source // the client that met it last
	shared bool   // a second client has confirmed it
}

const (
	learntKept   = 4096
	learntMin    = 512              // tokens; no model has a smaller window
	learntOwn    = 10 * time.Minute // how long a client is held to what it alone has met
	learntShared = 6 * time.Hour    // how long a tenant's clients are held to what was confirmed
	learntSame   = 10               // windows that differ by less than one tenth are the same
)

func newLearnt() (*learnt, error) {
	windows, err := lru.New[source, learntWindow](learntKept)
	if err != nil {
		return nil, fmt.Errorf("new window cache: %w", err)
	}
	alternates, err := lru.New[source, time.Time](learntKept)
	if err != nil {
		return nil, fmt.Errorf("new cache of roles: %w", err)
	}
	toolless, err := lru.New[source, time.Time](learntKept)
	if err != nil {
		return nil, fmt.Errorf("new cache of tools: %w", err)
	}
	raw, err := lru.New[session.ThreadID, int](learntKept)
	if err != nil {
		return nil, fmt.Errorf("new cache of raw answers: %w", err)
	}
	lost, err := lru.New[session.ThreadID, int](learntKept)
	if err != nil {
		return nil, fmt.Errorf("new cache of lost bonds: %w", err)
	}
	refused, err := lru.New[source, refusal](learntKept)
	if err != nil {
		return nil, fmt.Errorf("new cache of refusals: %w", err)
	}
	ready, err := lru.New[session.ThreadID, session.CondensationID](learntKept)
	if err != nil {
		return nil, fmt.Errorf("new cache of what is prepared: %w", err)
	}
	answers, err := lru.New[session.Hash, []byte](answersKept)
	if err != nil {
		return nil, fmt.Errorf("new cache of answers: %w", err)
	}
	newest, err := lru.New[session.ThreadID, calls](learntKept)
	if err != nil {
		return nil, fmt.Errorf("new cache of calls: %w", err)
	}
	return &learnt{windows, alternates, toolless, raw, lost, refused, ready, answers, newest}, nil
}

// purge forgets all: upstreams may have changed.
func (l *learnt) purge() {
	l.windows.Purge()
	l.alternates.Purge()
	l.refused.Purge()
	l.toolless.Purge()
}

// set notes a window that a client has met. Others are held to it once it is confirmed.
func (l *learnt) set(own, all source, w learntWindow) {
	w.by = own
	l.windows.Add(own, w)
	last, known := l.windows.Get(all)
	if known && w.at.Sub(last.at) < learntShared {
		switch confirmed := last.by != own && same(last.tokens, w.tokens); {
		case confirmed:
			w.shared, w.tokens = true, min(w.tokens, last.tokens)
		case last.shared:
			return
		}
	}
	l.windows.Add(all, w)
}

func same(a, b int) bool { return max(a, b)-min(a, b) <= max(a, b)/learntSame }

// window is the smallest of what a model is known to have and what was learnt.
func (l *learnt) window(own, all source, known int, now time.Time) int {
	least := func(w learntWindow, valid bool, lasts time.Duration) {
		if valid && now.Sub(w.at) < lasts && (known == 0 || w.tokens < known) {
			known = w.tokens
		}
	}
	w, ok := l.windows.Get(own)
	least(w, ok, learntOwn)
	w, ok = l.windows.Get(all)
	least(w, ok && w.shared, learntShared)
	return known
}

// since reports whether something was learnt of a model not long ago.
func (l *learnt) since(when *lru.Cache[source, time.Time], all source, now time.Time) bool {
	at, ok := when.Get(all)
	return ok && now.Sub(at) < learntShared
}

// keepWindow remembers a window for turns to come, unless the operator has said what it is.
func (t *Turn) keepWindow(window int, report *Report) {
	if t.model.Configured || window < learntMin {
		return
	}
	t.engine.learnt.set(t.counter.source, t.shared(), learntWindow{tokens: window, at: t.engine.o.Now()})
	report.Window = window
}

// source is that of the client's requests like this one. No other client's counts are corrected by them.
func (t *Turn) source() source { return t.sourceOf("client " + t.in.Credential) }

// shared is the source of all the tenant's requests like this one.
func (t *Turn) shared() source { return t.sourceOf("all") }

func (t *Turn) sourceOf(client string) source {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", t.in.Tenant.Name, client, t.in.Upstream.BaseURL, head(t.in.Split.Model)))
}
