package session_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestAppendAfterDeletionLogsWholeHistory: a request that was resolved before its session was deleted begins the session again with the
// complete history. It counts the messages whose total was known when it was resolved.
func TestAppendAfterDeletionLogsWholeHistory(t *testing.T) {
	d := newFixture(t)
	anyone := session.Scope{Tenant: "t"}
	first := d.send(d.registry, query(anyone, "s1 u1 a1 o1 g1"))
	q := query(anyone, "s1 u1 a1 o1 g1 u2")
	res, err := d.registry.Resolve(t.Context(), q)
	ok(t, err)
	counted := tally(&res, q)
	ok(t, d.store.(session.Archive).Forget(t.Context(), first.Thread.Session))
	if err := d.registry.Append(t.Context(), &res, counted); err == nil {
		t.Fatal("appended without the counts that it needs")
	}
	var asked []int
	counted.Count = func(p int) int { asked = append(asked, p); return 7 }
	ok(t, d.registry.Append(t.Context(), &res, counted))
	if res.Thread.Len != 5 || len(asked) != 4 || counted.Total(5) != 4*7+10 || counted.Tokens(5) != 10 || counted.Tokens(1) != 7 {
		t.Errorf("thread of %d, counted %v: %+v", res.Thread.Len, asked, counted)
	}
	if got := d.payloads(res.Thread.ID); got != "s1 u1 a1 o1 g1 u2" {
		t.Errorf("log: %s", got)
	}
	again := d.send(d.another(), query(anyone, "s1 u1 a1 o1 g1 u2 g2 u3"))
	if again.Thread.ID != res.Thread.ID || again.Known.Tokens != 38 {
		t.Errorf("found again as %+v", again.Known)
	}
	if err := d.registry.Answered(t.Context(), &first, "an answer that leaves a trace of its own", nil, nil); err == nil && first.Thread.ID != res.Thread.ID {
		t.Error("a thread that is gone was answered")
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAppendDoesNotJoinRecreatedThread: a request has logged its messages; its session is deleted, and another request begins a thread
// with the same id and length but other messages. The first request must not use that thread: traces of its history would point to a
// session whose deletion does not find them.
func TestAppendDoesNotJoinRecreatedThread(t *testing.T) {
	d := newFixture(t)
	scope := session.Scope{Tenant: "t", Key: "k"}
	archive := d.store.(session.Archive)
	mine, others := query(scope, "s1 u1 g1 u2"), query(scope, "s1 u1 g1 u3")
	res := d.send(d.registry, mine)
	ok(t, archive.Forget(t.Context(), res.Thread.Session))
	again := d.send(d.another(), others)
	if again.Thread.ID != res.Thread.ID || again.Thread.Len != res.Thread.Len {
		t.Fatalf("not begun again: %+v", again.Thread)
	}
	if err := d.registry.Refresh(t.Context(), &res); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("refreshed: %v", err)
	}
	counts := tally(&res, mine)
	counts.Count = func(int) int { return 10 }
	ok(t, d.registry.Append(t.Context(), &res, counts))
	if got, want := d.payloads(again.Thread.ID), "s1 u1 g1 u3"; got != want || res.Thread.ID == again.Thread.ID {
		t.Errorf("log of %s: %s, want %s; the first request is in %s", again.Thread.ID, got, want, res.Thread.ID)
	}
	if now, err := d.store.Thread(t.Context(), again.Thread.ID); err != nil || now.Head != again.Thread.Head {
		t.Errorf("the other request's thread ends with %s, %v", now.Head, err)
	}
	ok(t, archive.Forget(t.Context(), res.Thread.Session))
	left, err := d.store.Find(t.Context(), slices.Concat(mine.History.Chain[1:], others.History.Chain[1:]), "")
	ok(t, err)
	if i := slices.IndexFunc(left.Places, session.Place.Known); i >= 0 {
		t.Errorf("a position is left: %+v", left.Places[i])
	}
}
