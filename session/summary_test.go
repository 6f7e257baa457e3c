package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// losing is a store that lost some records, like a server that evicts single keys.
type losing struct {
	session.Store
	summaries map[session.CondensationID]bool
	reborn    map[session.ThreadID]session.Thread // threads that took over the id of a lost one
	down      bool
	asked     int // number of reads of summaries
}

func (l *losing) Summary(ctx context.Context, id session.CondensationID) (string, error) {
	l.asked++
	if l.down {
		return "", session.ErrUnavailable
	}
	if l.summaries[id] {
		return "", session.ErrNotFound
	}
	return l.Store.Summary(ctx, id)
}

func (l *losing) Thread(ctx context.Context, id session.ThreadID) (session.Thread, error) {
	if t, ok := l.reborn[id]; ok {
		return t, nil
	}
	return l.Store.Thread(ctx, id)
}

// condensedTwice logs a history with two condensations, which forget positions 2 to 3 and 2 to 5.
func (d *fixture) condensedTwice(words string) (session.Resolution, [2]session.Condensation) {
	d.t.Helper()
	q := query(session.Scope{Tenant: "t"}, words)
	res := d.send(d.registry, q)
	var made [2]session.Condensation
	for i, prefix := range []int{3, 5} {
		applied, err := d.registry.Condensations(d.t.Context(), &res)
		if err != nil {
			d.t.Fatal(err)
		}
		view := session.Project(q.History, applied)
		made[i], err = d.registry.Condense(d.t.Context(), &res, &view, session.Condensation{
			Prefix: prefix, Hash: q.History.Chain[prefix], Forgotten: []session.Range{{From: prefix - 1, To: prefix + 1}}, Offset: 2,
			Summary: []string{"first", "second"}[i], SummaryTokens: 3,
		})
		if err != nil {
			d.t.Fatal(err)
		}
	}
	return res, made
}

// views returns the view that another replica would forward for a history of these words.
func (d *fixture) views(words string) string {
	d.t.Helper()
	q := query(session.Scope{Tenant: "t"}, words)
	r := d.another()
	res, err := r.Resolve(d.t.Context(), q)
	if err != nil {
		d.t.Fatal(err)
	}
	cs, err := r.Condensations(d.t.Context(), &res)
	if err != nil {
		d.t.Fatal(err)
	}
	var got []string
	view := session.Project(q.History, cs)
	for _, item := range view.Items {
		got = append(got, strings.Trim(string(item.Raw), `"`)+item.Summary)
	}
	return strings.Join(got, " ")
}

func (d *fixture) wantView(what, words, want string) {
	d.t.Helper()
	if got := d.views(words); got != want {
		d.t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

// TestLostSummaries: a condensation whose summary is lost does not apply, and no view shows an empty summary.
func TestLostSummaries(t *testing.T) {
	const words = "u1 a1 o1 a2 o2 a3 o3"
	d := newFixture(t)
	store := &losing{Store: d.store, summaries: map[session.CondensationID]bool{}}
	d.store = store
	_, made := d.condensedTwice(words)
	d.wantView("all there", words, "u1 second a3 o3")
	store.summaries[made[0].ID] = true
	d.wantView("the first lost, which is not shown", words, "u1 second a3 o3")
	store.summaries[made[1].ID] = true
	d.wantView("both lost", words, words)
	delete(store.summaries, made[0].ID)
	d.wantView("the second lost", words, "u1 first a2 o2 a3 o3")

	q := query(session.Scope{Tenant: "t"}, words)
	res := d.send(d.another(), q)
	view := session.Project(q.History, nil)
	store.summaries[made[0].ID] = true
	_, err := d.another().Condense(t.Context(), &res, &view, session.Condensation{
		Prefix: 5, Hash: q.History.Chain[5], Forgotten: []session.Range{{From: 2, To: 6}}, Offset: 2, Summary: "again", SummaryTokens: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	d.wantView("condensed again", words, "u1 again a3 o3")

	store.down = true
	if _, err := d.another().Condensations(t.Context(), &res); !errors.Is(err, session.ErrUnavailable) {
		t.Errorf("got %v: a store that is away has lost nothing", err)
	}
}

// TestReusedCondensationIDsAreDistinguished: a thread whose record was lost begins again under its id and numbers its entries from
// the start, so that another condensation gets an id that was used before. Neither a fork that inherited the lost condensation nor a replica
// that caches its summary may confuse the two.
func TestReusedCondensationIDsAreDistinguished(t *testing.T) {
	const words, fork = "u1 a1 o1 a2 o2 a3 o3", "u1 a1 o1 a2 o2 a3 o9"
	d := newFixture(t)
	store := &losing{Store: d.store, reborn: map[session.ThreadID]session.Thread{}}
	d.store = store
	res, made := d.condensedTwice(words)
	d.send(d.another(), query(session.Scope{Tenant: "t"}, fork))
	d.wantView("the fork, while its parent lives", fork, "u1 second a3 o9")

	born := res.Thread
	other := made[1]
	other.Summary, other.Time = "", other.Time.Add(time.Nanosecond)
	born.Condensations = []session.Condensation{other}
	store.reborn[res.Thread.ID] = born
	d.wantView("the fork, after its parent began again", fork, fork)

	registry := d.another()
	if _, err := registry.Condensations(t.Context(), &res); err != nil { // fills the cache
		t.Fatal(err)
	}
	before := store.asked
	// The same id with another time is another condensation, whose summary is read from the store, not from the cache.
	res.Thread.Condensations = []session.Condensation{made[0]}
	res.Thread.Condensations[0].ID, res.Thread.Condensations[0].Summary = made[1].ID, ""
	cs, err := registry.Condensations(t.Context(), &res)
	if err != nil || len(cs) != 1 || store.asked != before+1 {
		t.Errorf("got %+v, %v; asked %d times", cs, err, store.asked-before)
	}
}
