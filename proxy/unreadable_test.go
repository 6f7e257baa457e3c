package proxy_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// keyless is a store whose key for summaries can be removed.
type keyless struct {
	session.Store
	gone *atomic.Bool
}

func (s keyless) Summary(ctx context.Context, id session.CondensationID) (string, error) {
	if s.gone.Load() {
		return "", fmt.Errorf("summary: %w", session.ErrUnreadable)
	}
	return s.Store.Summary(ctx, id)
}

// newborn makes every request look like the first after a restart: no summary is remembered.
type newborn struct {
	t     *testing.T
	store session.Store
}

func (n newborn) Registry(ctx context.Context) (*session.Registry, session.Store, session.Secret, error) {
	return newSessions(n.t, n.store).Registry(ctx)
}

// TestUnreadableSummary removes the key of a summary. The history goes upstream whole, without an empty summary; it is condensed again when
// that is due, and the store does not count as unavailable.
func TestUnreadableSummary(t *testing.T) {
	var gone atomic.Bool
	lost := func(s session.Store) session.Store { return keyless{s, &gone} }
	var r *rig
	r = condensing(t, setup{store: lost, sessions: latest(func() engine.Sessions { return newborn{t, r.store} })})
	r.wantCondensed(messages(turns("ships", 11)...))
	gone.Store(true)
	again := messages(turns("ships", 11)...) // answered before: nothing new is due
	r.wantUnchanged(again)
	if n := r.metric(`dewpoint_store_losses_total{op="summary_unreadable"}`); n != 1 {
		t.Errorf("%v unreadable summaries were counted", n)
	}
	calls := r.up.SummariserCalls()
	r.wantCondensed(messages(turns("ships", 13)...))
	if r.up.SummariserCalls() != calls+1 {
		t.Error("it was not condensed anew")
	}
	gone.Store(false)
	r.wantCondensed(messages(turns("ships", 15)...))
	if n := r.metric("dewpoint_store_degraded"); n != 0 {
		t.Error("the store counts as away")
	}
	told := 0
	for _, e := range r.logs.All() {
		if e.Level.String() == "error" {
			told++
		}
	}
	if told != 1 {
		t.Errorf("the log tells of it %d times", told)
	}
}

// latest opens the sessions when they are needed.
type latest func() engine.Sessions

func (l latest) Registry(ctx context.Context) (*session.Registry, session.Store, session.Secret, error) {
	return l().Registry(ctx)
}
