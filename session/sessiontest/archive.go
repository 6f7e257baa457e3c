package sessiontest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// listing reads all pages and returns the sessions by ID. Each must be listed once.
func listing(t *testing.T, s session.Backend, q session.SessionQuery) map[session.SessionID]session.Session {
	t.Helper()
	all := map[session.SessionID]session.Session{}
	for pages := 0; ; pages++ {
		page := must(s.Sessions(ctx(t), q))(t)
		if len(page.Sessions) > q.Limit || pages > 10_000 {
			t.Fatalf("page %d has %d sessions, want at most %d", pages, len(page.Sessions), q.Limit)
		}
		for _, ses := range page.Sessions {
			if _, twice := all[ses.ID]; twice {
				t.Errorf("session %s is listed twice", ses.ID)
			}
			all[ses.ID] = ses
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return all
		}
	}
}

func (s suite) ArchiveList(t *testing.T) {
	store := s.fresh(t)
	equal(t, len(listing(t, store, session.SessionQuery{Limit: 5})), 0)
	want := map[session.SessionID]session.Session{}
	for i := range 57 {
		id := session.ThreadID(fmt.Sprintf("t%d", i))
		ok(t, store.Append(ctx(t), batch(id, 0, 1+i%3)))
		ses := must(store.Session(ctx(t), "s-"+session.SessionID(id)))(t)
		want[ses.ID] = ses
	}
	for _, limit := range []int{1, 5, 57, 1000} {
		equal(t, listing(t, s.replica(t, store), session.SessionQuery{Limit: limit}), want)
	}
	odd := batch("odd", 0, 1)
	odd.Thread.Session = "{a}%\n?*" // callers choose IDs freely
	ok(t, store.Append(ctx(t), odd))
	if _, there := listing(t, store, session.SessionQuery{Limit: 5})[odd.Thread.Session]; !there {
		t.Error("a session with a strange id is not listed")
	}
}

func (s suite) ArchiveListFiltered(t *testing.T) {
	store := s.fresh(t)
	for i := range 20 {
		b := batch(session.ThreadID(fmt.Sprintf("t%02d", i)), 0, 1)
		b.Thread.Tenant, b.Key = []string{"even", "odd"}[i%2], fmt.Sprintf("key-%d", i/2)
		b.Thread.Seen = clock.Add(time.Duration(i) * time.Minute)
		ok(t, store.Append(ctx(t), b))
	}
	f := func(q session.SessionQuery, want ...session.SessionID) {
		t.Helper()
		q.Limit = 3
		equal(t, slices.Sorted(maps.Keys(listing(t, store, q))), want)
	}
	f(session.SessionQuery{Key: "key-3"}, "s-t06", "s-t07")
	f(session.SessionQuery{Key: "key-3", Tenant: "odd"}, "s-t07")
	f(session.SessionQuery{Since: clock.Add(17 * time.Minute)}, "s-t17", "s-t18", "s-t19")
	f(session.SessionQuery{Since: clock.Add(12 * time.Minute), Tenant: "even"}, "s-t12", "s-t14", "s-t16", "s-t18")
	f(session.SessionQuery{Tenant: "unknown"})
	for _, cursor := range []string{"!", "not base64", "\x00", "zz", "czE"} {
		is(t, second(store.Sessions(ctx(t), session.SessionQuery{Limit: 1, Cursor: cursor})), session.ErrCursor)
	}
}

// whole writes a session with one record of every kind, and takes the locks of its threads.
func whole(t *testing.T, store session.Backend, name string) session.SessionID {
	t.Helper()
	main, side := session.ThreadID(name), session.ThreadID(name+"-fork")
	b, forked := batch(main, 0, 40), fork(main, 30, side, 5)
	b.Traces = session.Traces{Lasting: []session.Hash{hash(name, "key"), hash(name, "call")}}
	ok(t, store.Append(ctx(t), b))
	ok(t, store.Append(ctx(t), batch(main, 40, 2)))
	ok(t, second(store.Condense(ctx(t), main, condensation(12))))
	c := must(store.Condense(ctx(t), main, condensation(30)))(t)
	ok(t, store.Request(ctx(t), main, clock))
	ok(t, store.Mark(ctx(t), place(main, 42), session.Traces{Lasting: []session.Hash{hash(name, "answer")}, Recent: []session.Hash{hash(name, "line")}}))
	forked.Thread.Session = b.Thread.Session
	forked.Thread.Condensations, forked.Traces.Lasting = []session.Condensation{c}, []session.Hash{hash(name, "call")}
	ok(t, store.Append(ctx(t), forked))
	ok(t, store.Mark(ctx(t), place(side, 35), session.Traces{Lasting: []session.Hash{hash(name, "answer")}}))
	ok(t, store.Mark(ctx(t), place(main, 42), session.Traces{Lasting: []session.Hash{hash(name, "answer"), hash(name, "another")}}))
	ok(t, store.Append(ctx(t), sharing(session.ThreadID(name)+"-held", main, 5)))
	for _, id := range []session.ThreadID{main, side} {
		ok(t, store.Save(ctx(t), id, session.Savings{Tokens: 5}))
		ok(t, second(store.Lock(ctx(t), id, time.Hour)))
	}
	recorded := entries(b.Thread.Session, 300)
	for i := range recorded {
		recorded[i].Name = hash(name, "request", i)
	}
	ok(t, store.WriteJournal(ctx(t), journal(name, 1, recorded...)))
	return b.Thread.Session
}

// ArchiveForget: nothing of the session is left, and nothing else changes.
func (s suite) ArchiveForget(t *testing.T) {
	store, other := s.pair(t)
	ok(t, second(store.Secret(ctx(t), session.Secret("secret"))))
	whole(t, store, "other")
	before := s.hooks.Dump(t, store)
	for range 3 {
		id := whole(t, store, "mine")
		if len(s.hooks.Dump(t, store)) < len(before)+45 {
			t.Fatal("the dump does not show what is kept")
		}
		ok(t, other.Forget(ctx(t), id))
		ok(t, other.Compact(ctx(t)))
		wantGone(t, store, "mine")
		wantGone(t, store, "mine-fork")
		wantGone(t, store, "mine-held")
		equal(t, len(listing(t, other, session.SessionQuery{Limit: 5})), 1)
		s.sameDump(t, store, before)
		must(store.Lock(ctx(t), "mine", time.Minute))(t).Release()
		s.sameDump(t, store, before)
	}
}

// ArchiveForgetMany: the record of a session lists its newest threads, in their order, and stays bounded. A thread that is
// no longer listed still exists, until it is deleted with its session.
func (s suite) ArchiveForgetMany(t *testing.T) {
	const excess = session.MaxThreads/4 + 20
	store := s.fresh(t)
	before := s.hooks.Dump(t, store)
	var all []session.ThreadID
	add := func(id session.ThreadID, at int) {
		b := batch(id, at, 1)
		b.Thread.Session, b.Key = "ses", "nightly"
		ok(t, store.Append(ctx(t), b))
	}
	for i := range session.MaxThreads + excess {
		all = append(all, session.ThreadID(fmt.Sprintf("t%05d", i)))
		add(all[i], 0)
	}
	add(all[session.MaxThreads], 1) // a listed thread continues
	ses := must(store.Session(ctx(t), "ses"))(t)
	equal(t, ses.Threads, all[excess:])
	equal(t, ses.Key, "nightly")
	add(all[0], 1)
	equal(t, thread(t, store, all[0]).Len, 2)
	ok(t, s.replica(t, store).Forget(ctx(t), "ses"))
	s.sameDump(t, store, before)
}

func (s suite) sameDump(t *testing.T, store session.Backend, want map[string]string) {
	t.Helper()
	got := s.hooks.Dump(t, store)
	for key, value := range got {
		if old, was := want[key]; !was {
			t.Errorf("left behind: %q = %q", key, value)
		} else if old != value {
			t.Errorf("changed: %q from %q to %q", key, old, value)
		}
	}
	for key := range want {
		if _, there := got[key]; !there {
			t.Errorf("gone: %q", key)
		}
	}
}

// ArchiveForgetOthers: places and traces that point to another session by now are kept.
func (s suite) ArchiveForgetOthers(t *testing.T) {
	store := s.fresh(t)
	id := whole(t, store, "mine")
	b := batch("heir", 0, 3)
	b.Places = append(b.Places, session.IndexEntry{Hash: hash("mine", 5), Place: place("heir", 3)})
	ok(t, store.Append(ctx(t), b))
	ok(t, store.Mark(ctx(t), place("heir", 2), session.Traces{Lasting: []session.Hash{hash("mine", "answer")}}))
	ok(t, store.Forget(ctx(t), id))
	found := lookup(t, store, []session.Hash{hash("mine", 5), hash("mine", 6)}, "heir")
	equal(t, found.Places, []session.Place{place("heir", 3), {}})
	equal(t, must(store.Trace(ctx(t), []session.Hash{hash("mine", "answer"), hash("mine", "line")}))(t), []session.Place{place("heir", 2), {}})
	equal(t, *found.Hinted, thread(t, store, "heir"))
}

// ArchiveForgetThenWrite: a late write restores nothing of a deleted session, and one with the same ID starts from nothing.
func (s suite) ArchiveForgetThenWrite(t *testing.T) {
	store := s.fresh(t)
	before := s.hooks.Dump(t, store)
	ok(t, store.Forget(ctx(t), whole(t, store, "mine")))
	late := fork("mine", 30, "late", 5)
	late.Thread.Session = "s-mine"
	is(t, store.Append(ctx(t), batch("mine", 42, 2)), session.ErrStale)
	is(t, store.Append(ctx(t), batch("mine-fork", 35, 2)), session.ErrStale)
	is(t, store.Append(ctx(t), late), session.ErrStale)
	wantGone(t, store, "mine")
	s.sameDump(t, store, before)

	b := batch("mine", 0, 3)
	b.Thread.Created = clock.Add(time.Second)
	ok(t, store.Append(ctx(t), b))
	is(t, store.Append(ctx(t), batch("mine", 3, 2)), session.ErrStale) // for the deleted thread, which had this length once
	late = fork("mine", 3, "late", 1)
	late.Thread.Session, late.ParentCreated = "s-mine", clock
	mine := s.hooks.Dump(t, store)
	is(t, store.Append(ctx(t), late), session.ErrStale) // likewise
	s.sameDump(t, store, mine)
	want := b.Thread
	want.Seq, want.Requests = 3, 1
	equal(t, thread(t, store, "mine"), want)
	equal(t, events(t, store, "mine"), logged(b, 1))
	equal(t, must(store.Session(ctx(t), "s-mine"))(t).Threads, []session.ThreadID{"mine"})
}

// ArchiveForgetMeanwhile deletes a session during writes to it. The sessions that these begin are complete: once they are
// deleted too, nothing is left.
func (s suite) ArchiveForgetMeanwhile(t *testing.T) {
	store := s.fresh(t)
	before := s.hooks.Dump(t, store)
	for round := range 6 {
		whole(t, store, "mine")
		together(t, 4, func(i int, store session.Backend) error {
			if i == 3 {
				return store.Forget(ctx(t), "s-mine")
			}
			return keepWriting(t, store, session.ThreadID(fmt.Sprintf("mine-%d-%d", round, i)))
		}, store, s.replica(t, store))
		for id := range listing(t, store, session.SessionQuery{Limit: 100}) {
			ok(t, store.Forget(ctx(t), id))
		}
		s.sameDump(t, store, before)
	}
}

// manyRecent returns so many recent traces that a few steps leave more than a thread keeps.
func manyRecent(id session.ThreadID, step int) []session.Hash {
	all := make([]session.Hash, session.MaxRecent/4)
	for i := range all {
		all[i] = hash(id, "recent", step, i)
	}
	return all
}

// keepWriting appends, marks, forks and condenses in one session, as running requests do.
func keepWriting(t *testing.T, store session.Backend, id session.ThreadID) error {
	at := 0
	for i := range 30 {
		b := batch(id, at, 2)
		b.Thread.Session, b.Traces = "s-mine", session.Traces{Lasting: []session.Hash{hash(id, "trace", i)}, Recent: manyRecent(id, i)}
		switch err := store.Append(ctx(t), b); {
		case errors.Is(err, session.ErrStale):
			at = 0 // the thread was deleted: begin it again
			continue
		case err != nil:
			return err
		}
		at += 2
		forked := fork(id, at, session.ThreadID(fmt.Sprintf("%s-fork-%d", id, i)), 1)
		forked.Thread.Session = "s-mine"
		for _, err := range []error{
			store.Mark(ctx(t), place(id, at), session.Traces{Lasting: []session.Hash{hash(id, "mark", i)}}),
			second(store.Condense(ctx(t), id, condensation(8))),
			store.Append(ctx(t), forked),
		} {
			if err != nil && !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrStale) {
				return err
			}
		}
	}
	return nil
}

func (s suite) ArchiveRequest(t *testing.T) {
	store, other := s.pair(t)
	ok(t, store.Append(ctx(t), batch("t", 0, 8)))
	ok(t, other.Request(ctx(t), "t", clock))
	pending := func(want uint64) {
		t.Helper()
		equal(t, lookup(t, store, nil, "t").Hinted.Requested, want)
		equal(t, thread(t, other, "t").Requested, want)
	}
	pending(9)
	equal(t, events(t, store, "t")[8], session.Event{Seq: 9, Kind: session.Requested, Time: clock})
	ok(t, store.Append(ctx(t), batch("t", 8, 2))) // by a caller that has not seen the request
	pending(9)
	ok(t, store.Request(ctx(t), "t", clock))
	pending(12)
	trim := condensation(8)
	trim.Reason = session.ReasonArrival
	ok(t, second(store.Condense(ctx(t), "t", trim)))
	pending(12)
	b := fork("t", 8, "fork", 2)
	b.Thread.Requested = 12
	ok(t, store.Append(ctx(t), b))
	equal(t, thread(t, store, "fork").Requested, 0)
	ok(t, second(store.Condense(ctx(t), "t", condensation(8))))
	pending(0)
	late := batch("t", 10, 2)
	late.Thread.Requested = 12 // from an earlier read
	ok(t, store.Append(ctx(t), late))
	pending(0)
}

// ArchiveSettings: settings are visible to all replicas and after a restart, and are not listed as sessions.
func (s suite) ArchiveSettings(t *testing.T) {
	store := s.open(t)
	read := func(from session.Backend) map[string][]byte {
		t.Helper()
		return must(from.Settings(ctx(t)))(t)
	}
	equal(t, len(read(store)), 0)
	other := s.replica(t, store)
	ok(t, store.Set(ctx(t), "a", []byte("one")))
	ok(t, other.Set(ctx(t), "b:*", []byte{0, 1}))
	ok(t, other.Set(ctx(t), "a", []byte("two")))
	equal(t, read(store), map[string][]byte{"a": []byte("two"), "b:*": {0, 1}})
	equal(t, read(other), read(store))
	ok(t, store.Set(ctx(t), "a", nil))
	ok(t, store.Set(ctx(t), "never", nil))
	equal(t, len(listing(t, store, session.SessionQuery{Limit: 5})), 0)
	store = closing(t, s.hooks.Reopen(t, store))
	equal(t, read(store), map[string][]byte{"b:*": {0, 1}})
}
