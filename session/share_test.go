package session_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

// edits returns the requests of a client that edits its first message at each step and sends at most its newest most messages.
func edits(scope session.Scope, steps, most int) (requests []session.Query) {
	var tail []string
	for step := range steps {
		words := append([]string{fmt.Sprintf("u%03d-%s", step, strings.Repeat("x", 300))}, tail[max(len(tail)-most, 0):]...)
		requests = append(requests, query(scope, strings.Join(append([]string{"sys" + strings.Repeat("y", 3000)}, words...), " ")))
		for _, kind := range []string{"a", "o"} {
			tail = append(tail, fmt.Sprintf("%s%03d-%s", kind, step, strings.Repeat("z", 500)))
		}
	}
	return requests
}

// log reads a thread's log, including payloads that other threads store. size is that of the payloads in the thread's own entries.
func (d *fixture) log(id session.ThreadID) (events []session.Event, size int) {
	d.t.Helper()
	for page, err := range session.ReadLog(d.t.Context(), d.store, id, math.MaxInt) {
		must(d.t, err)
		for _, e := range page {
			if e.Ref.Thread == "" {
				size += len(e.Payload)
			}
		}
		events = append(events, page...)
	}
	return events, size
}

// wantWhole checks that a thread's log has all messages of a query.
func (d *fixture) wantWhole(q session.Query, id session.ThreadID) (size int) {
	d.t.Helper()
	events, size := d.log(id)
	var got []string
	for _, e := range events {
		got = append(got, string(e.Payload))
	}
	var want []string
	for i := range q.History.Messages {
		want = append(want, string(q.History.Messages[i].Raw))
	}
	if !slices.Equal(got, want) {
		d.t.Errorf("thread %s has %d entries that differ from the %d messages sent", id, len(got), len(want))
	}
	return size
}

// TestEachMessageIsLoggedAFewTimes: when a client begins a thread with each request, its messages are not all logged each time.
func TestEachMessageIsLoggedAFewTimes(t *testing.T) {
	quick.Alone(t)
	for name, most := range map[string]int{"all messages": 1000, "a window": 60} {
		t.Run(name, func(t *testing.T) {
			d, logged, unique := newFixture(t), 0, 3000
			requests := edits(session.Scope{Tenant: "t", Key: "k"}, 80, most)
			for _, q := range requests {
				res := d.send(d.registry, q)
				if n := len(res.Thread.Shares); n > 16 {
					t.Fatalf("%d threads hold its content", n)
				}
				logged += d.wantWhole(q, res.Thread.ID)
				unique += 1300
			}
			if logged > 5*unique {
				t.Errorf("%d KB of %d KB are logged", logged>>10, unique>>10)
			}

			// What its client sends next is found, and so is a request that goes back a few messages.
			last := requests[len(requests)-1]
			words := all(last)
			again := d.send(d.registry, query(last.Scope, strings.Join(append(slices.Clone(words), "a999", "o999"), " ")))
			if again.New || again.Match != session.MatchEnd {
				t.Errorf("the next request begins a thread: %v", again.Match)
			}
			back := d.send(d.registry, query(last.Scope, strings.Join(append(slices.Clone(words[:len(words)-20]), "u999"), " ")))
			if back.Match != session.MatchInside || back.Thread.Parent != again.Thread.ID {
				t.Errorf("going back 20 messages: %v of %s", back.Match, back.Thread.Parent)
			}
		})
	}
}

// TestLongThreadSharesContent: when a client edits its first message only after thousands of messages, these are not logged again, although one
// read does not cover them, and even if some are short or equal.
func TestLongThreadSharesContent(t *testing.T) {
	quick.Alone(t)
	quick.Skip(t)
	d, logged, words := newFixture(t), 0, []string{"u"}
	for i := range 1000 {
		for _, kind := range []string{"a", "o"} {
			words = append(words, fmt.Sprintf("%s%04d-%s", kind, i, strings.Repeat("z", 100)))
		}
		words = append(words, "g-done", "u-continue")
	}
	for step := range 12 {
		words[0] = fmt.Sprintf("u%03d", step)
		res := d.send(d.registry, query(session.Scope{Tenant: "t", Key: "k"}, strings.Join(words, " ")))
		_, size := d.log(res.Thread.ID)
		logged += size
	}
	if unique := len(strings.Join(words, "")); logged > 4*unique {
		t.Errorf("%d KB of %d KB are logged", logged>>10, unique>>10)
	}
}

// TestLargeMessagesAreLoggedOnce: large messages are logged once as well, and reading them stays within the bounds.
func TestLargeMessagesAreLoggedOnce(t *testing.T) {
	const large = 200 << 10
	d, words, scope := newFixture(t), []string{"u"}, session.Scope{Tenant: "t", Key: "k"}
	for i := range 30 {
		words = append(words, fmt.Sprintf("a%04d-%s", i, strings.Repeat("y", large)), fmt.Sprintf("o%04d-%s", i, strings.Repeat("z", large)))
	}
	d.send(d.registry, query(scope, strings.Join(words, " ")))
	words[0] = "u-edited"
	edited := query(scope, strings.Join(words, " "))
	id := d.send(d.registry, edited).Thread.ID
	if size := d.wantWhole(edited, id); size > large {
		t.Errorf("%d bytes are logged", size)
	}
	names, err := d.store.Events(t.Context(), id, 1, 100)
	must(t, err)
	err = session.ReadContent(t.Context(), d.store, names, 10*large)
	read := 0
	for _, e := range names {
		read += len(e.Payload)
	}
	if !errors.Is(err, session.ErrTooLarge) || read < 10*large || read > 11*large {
		t.Errorf("%d of %d bytes were read, %v", read, 10*large, err)
	}
	for _, err = range session.ReadLog(t.Context(), d.store, id, 10*large) {
		if err != nil {
			break
		}
	}
	if !errors.Is(err, session.ErrTooLarge) {
		t.Errorf("reading ended with %v", err)
	}
}

// TestLoggedKeepsTheNewest: a large message does not prevent newer ones from being returned, and what is read is bounded.
func TestLoggedKeepsTheNewest(t *testing.T) {
	quick.Alone(t)
	quick.Skip(t)
	for name, c := range map[string]struct {
		sizes []int
		want  int // messages, with the one that exceeds the bound
	}{
		"a large one, then small ones": {append([]int{17 << 20}, slices.Repeat([]int{100}, 40)...), 41},
		"many large ones":              {slices.Repeat([]int{1 << 20}, 30), 16},
	} {
		t.Run(name, func(t *testing.T) {
			d, words := newFixture(t), []string{"u"}
			for i, size := range c.sizes {
				words = append(words, fmt.Sprintf("a%04d-%s", i, strings.Repeat("z", size)))
			}
			res := d.send(d.registry, query(session.Scope{Tenant: "t", Key: "k"}, strings.Join(words, " ")))
			var err error
			res.Thread, err = d.store.Thread(t.Context(), res.Thread.ID)
			must(t, err)
			logged, err := d.registry.Logged(t.Context(), &res)
			must(t, err)
			if n := len(logged.Events); n != c.want || logged.Whole != (n == len(c.sizes)+1) || !strings.Contains(string(logged.Events[n-1].Payload), fmt.Sprintf("%04d-", len(c.sizes)-1)) {
				t.Errorf("%d messages were read", n)
			}
		})
	}
}

// deleting is a store in which a session is deleted right before the next append.
type deleting struct {
	session.Backend
	id session.SessionID
}

func (s *deleting) Append(ctx context.Context, b session.Batch) error {
	if id := s.id; id != "" {
		s.id = ""
		if err := s.Forget(ctx, id); err != nil {
			return err
		}
	}
	return s.Backend.Append(ctx, b)
}

// TestContentOfDeletedThreadsIsLoggedAgain: a thread that begins while the threads that store its content are deleted logs all of it.
func TestContentOfDeletedThreadsIsLoggedAgain(t *testing.T) {
	d := newFixture(t)
	store := &deleting{Backend: d.store.(session.Backend)}
	registry := session.NewRegistry(store, secret)
	for i, q := range edits(session.Scope{Tenant: "t", Key: "k"}, 11, 1000) {
		res := d.send(registry, q)
		size := d.wantWhole(q, res.Thread.ID)
		switch {
		case i == 9:
			store.id = res.Thread.Session
		case i == 10 && size < 13_000:
			t.Errorf("after the deletion %d bytes are logged", size)
		case i == 8 && size > 4_000:
			t.Errorf("before the deletion %d bytes are logged: this test sees nothing", size)
		}
	}
}

// TestContentUnderAnotherKeyIsLoggedAgain: content that cannot be decrypted, or to which only references in clear exist, is logged again
// when its client sends it in a new thread.
func TestContentUnderAnotherKeyIsLoggedAgain(t *testing.T) {
	secretOf := func(name string) []byte { return []byte(strings.Repeat(name, 32)[:32]) }
	for name, c := range map[string]struct {
		active [2]string
		keys   [2]map[string][]byte
	}{
		"the key was removed":    {[2]string{"old", "new"}, [2]map[string][]byte{{"old": secretOf("old")}, {"new": secretOf("new")}}},
		"encryption was stopped": {[2]string{"k", ""}, [2]map[string][]byte{{"k": secretOf("k")}, {"k": secretOf("k")}}},
	} {
		path := filepath.Join(t.TempDir(), "test.db")
		requests := edits(session.Scope{Tenant: "t", Key: "k"}, 12, 1000)
		for i, active := range c.active {
			keys, err := seal.New(active, c.keys[i])
			must(t, err)
			store, err := boltstore.Open(boltstore.Options{Path: path, Content: true, Keys: keys})
			must(t, err)
			d := &fixture{t: t, store: store, registry: session.NewRegistry(store, secret)}
			for n, q := range requests[6*i:][:6] {
				res := d.send(d.registry, q)
				if d.wantWhole(q, res.Thread.ID); n == 5 && len(res.Thread.Shares) == 0 {
					t.Errorf("%s: with key %q nothing is shared", name, active)
				}
			}
			must(t, store.Close())
		}
	}
}

// damaged is a store in which some entries are damaged.
type damaged struct {
	session.Backend
	lost map[session.EntryID]bool
}

func (s *damaged) Events(ctx context.Context, id session.ThreadID, from uint64, limit int) ([]session.Event, error) {
	events, err := s.Backend.Events(ctx, id, from, limit)
	for i := range events {
		if s.lost[session.EntryID{Thread: id, Seq: events[i].Seq}] {
			events[i] = session.Event{Seq: events[i].Seq}
		}
	}
	return events, err
}

// TestDamagedContentIsLoggedAgain: the client's next thread logs damaged content again, whether the thread before stores it or refers to
// it, and shares everything else.
func TestDamagedContentIsLoggedAgain(t *testing.T) {
	d := newFixture(t)
	store := &damaged{d.store.(session.Backend), map[session.EntryID]bool{}}
	d.store = store
	registry := session.NewRegistry(store, secret)
	requests := edits(session.Scope{Tenant: "t", Key: "k"}, 13, 1000)
	for i, q := range requests {
		res := d.send(registry, q)
		size := d.wantWhole(q, res.Thread.ID)
		if i < 9 {
			continue
		}
		if size > 5000 || len(res.Thread.Shares) == 0 {
			t.Errorf("request %d: %d bytes are logged", i, size)
		}
		events, err := d.store.Events(t.Context(), res.Thread.ID, 1, 100)
		must(t, err)
		own := events[len(events)-1]
		store.lost = map[session.EntryID]bool{{Thread: res.Thread.ID, Seq: own.Seq}: true, events[5].Ref: true}
	}
}

// TestForgedReferenceReadsNoEncryptedContent: somebody who can write to the store but has no key cannot make encrypted content appear
// as another thread's.
func TestForgedReferenceReadsNoEncryptedContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	keys, err := seal.New("k", map[string][]byte{"k": []byte(strings.Repeat("k", 32))})
	must(t, err)
	open := func(keys *seal.Keys) session.Backend {
		store, err := boltstore.Open(boltstore.Options{Path: path, Content: true, Keys: keys})
		must(t, err)
		return store
	}
	digest := session.Hash{1}
	batch := func(id session.ThreadID, e session.Event) session.Batch {
		e.Pos, e.Kind, e.Digest, e.Chain = 1, session.User, digest, session.Hash{2}
		return session.Batch{Thread: session.Thread{ID: id, Session: session.SessionID(id), Len: 1}, Events: []session.Event{e}}
	}
	named := session.EntryID{Thread: "victim", Seq: 1}
	for _, step := range []struct {
		keys  *seal.Keys
		batch session.Batch
	}{
		{keys, batch("victim", session.Event{Payload: []byte("secret")})},
		{nil, batch("forged", session.Event{Ref: named})},
		{keys, batch("real", session.Event{Ref: named})},
	} {
		store := open(step.keys)
		must(t, store.Append(t.Context(), step.batch))
		must(t, store.Close())
	}
	store := open(keys)
	defer store.Close()
	for id, want := range map[session.ThreadID]string{"forged": "", "real": "secret"} {
		events, err := store.Events(t.Context(), id, 1, 10)
		must(t, err)
		must(t, session.ReadContent(t.Context(), store, events, math.MaxInt))
		if got := string(events[0].Payload); got != want {
			t.Errorf("%s shows %q, want %q", id, got, want)
		}
	}
}

// TestForgedReferenceIsNotEncrypted: a new thread does not take over a reference in clear to encrypted content, because it may be forged.
func TestForgedReferenceIsNotEncrypted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	keys, err := seal.New("k", map[string][]byte{"k": []byte(strings.Repeat("k", 32))})
	must(t, err)
	open := func(keys *seal.Keys) *fixture {
		store, err := boltstore.Open(boltstore.Options{Path: path, Content: true, Keys: keys})
		must(t, err)
		return &fixture{t: t, store: store, registry: session.NewRegistry(store, secret)}
	}
	d, long := open(keys), strings.Repeat("x", 4000)
	victim := d.send(d.registry, query(session.Scope{Tenant: "victim"}, "u-known-"+long))
	scope := session.Scope{Tenant: "t", Key: "k"}
	before := d.send(d.registry, query(scope, "u-first a001 o001"))
	must(t, d.store.Close())
	d = open(nil)
	forged := session.Event{Pos: 4, Kind: session.User, Digest: query(scope, "u-known-"+long).History.Message(1).Digest, Ref: session.EntryID{Thread: victim.Thread.ID, Seq: 1}}
	thread := before.Thread
	thread.Len++
	must(t, d.store.Append(t.Context(), session.Batch{Thread: thread, At: 3, Events: []session.Event{forged}}))
	must(t, d.store.Close())
	d = open(keys)
	defer d.store.Close()
	res := d.send(d.registry, query(scope, "u-second a001 o001 u-known-"+long))
	if slices.Contains(res.Thread.Shares, victim.Thread.ID) {
		t.Errorf("content is in %s", res.Thread.Shares)
	}
}

// TestContentIsNotShared: threads of different protocols share no content, and content that is not stored is not shared.
func TestContentIsNotShared(t *testing.T) {
	d := newFixture(t)
	requests := edits(session.Scope{Tenant: "t", Key: "k"}, 11, 1000)
	requests[10].Dialect = "messages"
	for i, q := range requests {
		if res := d.send(d.registry, q); i == 9 && len(res.Thread.Shares) == 0 || i == 10 && len(res.Thread.Shares) > 0 {
			t.Errorf("request %d: content is in %s", i, res.Thread.Shares)
		}
	}
	bare, err := boltstore.Open(boltstore.Options{Path: filepath.Join(t.TempDir(), "test.db")})
	must(t, err)
	defer bare.Close()
	registry := session.NewRegistry(bare, secret)
	for _, q := range requests[:10] {
		if res := d.send(registry, q); len(res.Thread.Shares) > 0 {
			t.Errorf("content that is not kept is in %s", res.Thread.Shares)
		}
	}
}

// TestContentOfAncestorsIsShared: content is also found in the logs of the threads that the one before was forked from.
func TestContentOfAncestorsIsShared(t *testing.T) {
	d, scope := newFixture(t), session.Scope{Tenant: "t", Key: "k"}
	requests := edits(scope, 31, 1000)
	words := all(requests[30])
	words[1] = all(requests[0])[1]
	base := d.send(d.registry, query(scope, strings.Join(words, " ")))
	forked := slices.Concat(words[:50], []string{"u-another"}, words[52:])
	fork := d.send(d.registry, query(scope, strings.Join(forked, " ")))
	if fork.Thread.ForkAt != 49 {
		t.Fatalf("forked at %d", fork.Thread.ForkAt)
	}
	edited := query(scope, strings.Join(slices.Concat([]string{words[0], "u-edited"}, forked[2:]), " "))
	res := d.send(d.registry, edited)
	if size := d.wantWhole(edited, res.Thread.ID); size > 100 || !slices.Contains(res.Thread.Shares, base.Thread.ID) {
		t.Errorf("%d bytes are logged, the others are in %s", size, res.Thread.Shares)
	}
}
