package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// forgetful is a store in which some summaries are unreadable or empty.
type forgetful struct {
	session.Store
	lost, empty map[uint64]bool
	asked       int
}

func (s *forgetful) Summary(ctx context.Context, id session.CondensationID) (string, error) {
	s.asked++
	if s.empty[id.Seq] {
		return "", nil
	}
	if s.lost[id.Seq] {
		return "", fmt.Errorf("summary: %w", session.ErrUnreadable)
	}
	return s.Store.Summary(ctx, id)
}

// TestUnreadableSummariesDoNotApply makes the summaries of two condensations unreadable, the newest first.
func TestUnreadableSummariesDoNotApply(t *testing.T) {
	d := newFixture(t)
	store := &forgetful{Store: d.store, lost: map[uint64]bool{}, empty: map[uint64]bool{}}
	d.store = store
	q := query(session.Scope{Tenant: "t"}, "u1 a1 o1 a2 o2 a3 o3 a4 o4")
	res := d.send(d.registry, q)
	condense := func(registry *session.Registry, prefix int, summary string) session.Condensation {
		t.Helper()
		applied, err := registry.Condensations(t.Context(), &res)
		if err != nil {
			t.Fatal(err)
		}
		view := session.Project(q.History, applied)
		c, err := registry.Condense(t.Context(), &res, &view, session.Condensation{
			Prefix: prefix, Hash: q.History.Chain[prefix], Forgotten: []session.Range{{From: 2, To: prefix + 1}}, Offset: 2,
			Summary: summary, SummaryTokens: 3,
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := condense(d.registry, 3, "first")
	second := condense(d.registry, 5, "second")
	want := func(registry *session.Registry, want string, unreadable int) {
		t.Helper()
		res := d.send(registry, q)
		applied, err := registry.Condensations(t.Context(), &res)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		view := session.Project(q.History, applied)
		for _, item := range view.Items {
			got = append(got, strings.Trim(string(item.Raw), `"`)+item.Summary)
		}
		if strings.Join(got, " ") != want || res.Unreadable != unreadable {
			t.Errorf("got %s with %d unreadable, want %s with %d", got, res.Unreadable, want, unreadable)
		}
	}
	want(d.another(), "u1 second a3 o3 a4 o4", 0)
	store.lost[second.ID.Seq] = true
	want(d.another(), "u1 first a2 o2 a3 o3 a4 o4", 1)
	store.empty[first.ID.Seq] = true
	registry := d.another()
	want(registry, "u1 a1 o1 a2 o2 a3 o3 a4 o4", 2)
	asked := store.asked
	want(registry, "u1 a1 o1 a2 o2 a3 o3 a4 o4", 2)
	if store.asked != asked {
		t.Error("an unreadable summary is read again")
	}
	condense(registry, 7, "anew")
	want(registry, "u1 anew a4 o4", 2)
	want(d.another(), "u1 anew a4 o4", 2)
}
