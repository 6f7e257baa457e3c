package sessiontest

import (
	"errors"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func (s suite) AppendBegin(t *testing.T) {
	store, b := s.fresh(t), batch("t", 0, 3)
	ok(t, store.Append(ctx(t), b))
	want := b.Thread
	want.Seq = 3
	equal(t, thread(t, store, "t"), want)
	equal(t, events(t, store, "t"), logged(b, 1))
}

func (s suite) AppendExtend(t *testing.T) {
	store, first, second := s.fresh(t), batch("t", 0, 3), batch("t", 3, 2)
	ok(t, store.Append(ctx(t), first))
	second.Thread.System = hash("another system")
	ok(t, store.Append(ctx(t), second))
	want := second.Thread
	want.Seq = 5
	equal(t, thread(t, store, "t"), want)
	equal(t, events(t, store, "t"), append(logged(first, 1), logged(second, 4)...))
}

// AppendStale: a batch that does not fit leaves nothing behind, not even its index entries.
func (s suite) AppendStale(t *testing.T) {
	store, b := s.fresh(t), batch("t", 0, 3)
	ok(t, store.Append(ctx(t), b))
	before, log := thread(t, store, "t"), events(t, store, "t")
	for _, at := range []int{0, 2, 4, -1} {
		stale := batch("t", at, 7)
		stale.Key, stale.Traces = "other", []session.Hash{hash("trace")}
		is(t, store.Append(ctx(t), stale), session.ErrStale)
	}
	is(t, store.Append(ctx(t), b), session.ErrStale) // the same again
	equal(t, thread(t, store, "t"), before)
	equal(t, events(t, store, "t"), log)
	equal(t, lookup(t, store, []session.Hash{hash("t", 5)}, "").Places, make([]session.Place, 1))
	equal(t, sessionAt(t, store, "s-t").Key, "key-t")
	equal(t, lookupTraces(t, store, hash("trace")), make([]session.Place, 1))
}

func (s suite) AppendUnknown(t *testing.T) {
	store := s.fresh(t)
	is(t, store.Append(ctx(t), batch("t", 3, 2)), session.ErrStale)
	is(t, second(store.Thread(ctx(t), "t")), session.ErrNotFound)
	fork := batch("t", 3, 2)
	fork.Thread.Parent, fork.Thread.ForkAt = "p", 4
	is(t, store.Append(ctx(t), fork), session.ErrStale)
	is(t, second(store.Session(ctx(t), "s-t")), session.ErrNotFound)
}

// AppendLogOnly: entries without a position take a Seq but leave Len.
func (s suite) AppendLogOnly(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("t", 0, 1)))
	b := batch("t", 1, 0)
	b.Events = []session.Event{{Kind: session.Requested, Time: clock}, {Kind: session.System, Digest: hash("s"), Time: clock, Payload: []byte("{}")}}
	ok(t, store.Append(ctx(t), b))
	ok(t, store.Append(ctx(t), batch("t", 1, 1)))
	got := thread(t, store, "t")
	equal(t, [2]uint64{uint64(got.Len), got.Seq}, [2]uint64{2, 4})
	equal(t, events(t, store, "t")[1:3], logged(b, 2))
}

func (s suite) AppendEmpty(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), session.Batch{Thread: session.Thread{ID: "t", Created: clock}}))
	equal(t, thread(t, store, "t"), session.Thread{ID: "t", Created: clock})
	equal(t, len(events(t, store, "t")), 0)
	ok(t, store.Append(ctx(t), batch("t", 0, 1)))
	equal(t, thread(t, store, "t").Seq, 1)
}

func (s suite) AppendNoID(t *testing.T) {
	store := s.fresh(t)
	if err := store.Append(ctx(t), batch("", 0, 1)); err == nil || errors.Is(err, session.ErrUnavailable) {
		t.Errorf("no id: %v", err)
	}
	if err := store.Append(ctx(t), batch(session.ThreadID(strings.Repeat("x", 100_000)), 0, 1)); err == nil || errors.Is(err, session.ErrUnavailable) {
		t.Errorf("huge id: %v", err)
	}
	ok(t, store.Append(ctx(t), batch("t", 0, 1))) // and the store is none the worse
	for _, id := range []session.ThreadID{"", "u"} {
		is(t, second(store.Thread(ctx(t), id)), session.ErrNotFound)
		is(t, second(store.Events(ctx(t), id, 1, 10)), session.ErrNotFound)
		is(t, second(store.Condense(ctx(t), id, condensation(8))), session.ErrNotFound)
	}
	is(t, second(store.Session(ctx(t), "")), session.ErrNotFound)
}

// AppendStrangeIDs: no id is a part or a pattern of another.
func (s suite) AppendStrangeIDs(t *testing.T) {
	store := s.fresh(t)
	ids := []session.ThreadID{"a", "a:", "}", "{", "{a}", "}{", "a}b", "a%7Db", "%7D", "\x00", "\x00\x00", "\xff\xfe", "*", "a b", "ä"}
	for i, id := range ids {
		ok(t, store.Append(ctx(t), batch(id, 0, i+1)))
	}
	for i, id := range ids {
		got := thread(t, store, id)
		equal(t, got.ID, id)
		equal(t, got.Len, i+1)
		equal(t, events(t, store, id), logged(batch(id, 0, i+1), 1))
		equal(t, sessionAt(t, store, got.Session).Threads, []session.ThreadID{id})
	}
}

func (s suite) AppendSession(t *testing.T) {
	store := s.fresh(t)
	var all []session.ThreadID
	for i, id := range []session.ThreadID{"z", "a", "m"} {
		b := batch(id, 0, i+1)
		b.Thread.Session, b.Key = "ses", "key"
		ok(t, store.Append(ctx(t), b))
		all = append(all, id)
	}
	again := batch("z", 1, 8)
	again.Thread.Session, again.Thread.Tenant, again.Key = "ses", "", ""
	ok(t, store.Append(ctx(t), again))
	got := sessionAt(t, store, "ses")
	want := session.Session{ID: "ses", Tenant: "acme", Key: "key", Threads: all, Created: clock, Seen: again.Thread.Seen}
	equal(t, got, want)
}

func (s suite) AppendNoSession(t *testing.T) {
	store, b := s.fresh(t), batch("t", 0, 1)
	b.Thread.Session = ""
	ok(t, store.Append(ctx(t), b))
	equal(t, thread(t, store, "t").Session, "")
}

// AppendPayloads: they come back byte for byte, whatever they are.
func (s suite) AppendPayloads(t *testing.T) {
	store := s.fresh(t)
	b := batch("t", 0, 0)
	for _, p := range []string{"", "\x00", "\xff\xfe\x00\xc3(", "{}", strings.Repeat("\x00", 5000), strings.Repeat(`{"role":"tool"}`, 20_000)} {
		b.Events = append(b.Events, session.Event{Kind: session.Agent, Time: clock, Payload: []byte(p)})
	}
	ok(t, store.Append(ctx(t), b))
	for i, e := range events(t, store, "t") {
		if string(e.Payload) != string(b.Events[i].Payload) {
			t.Errorf("payload %d: got %d bytes, want %d", i, len(e.Payload), len(b.Events[i].Payload))
		}
	}
}

func (s suite) AppendNoContent(t *testing.T) {
	store, b := s.hooks.WithoutContent(t), batch("t", 0, 3)
	defer func() { ok(t, store.Close()) }()
	ok(t, store.Append(ctx(t), b))
	c := condensed(t, store, "t", condensation(3))
	want := logged(b, 1)
	for i := range want {
		want[i].Payload = nil
	}
	equal(t, events(t, store, "t")[:3], want)
	equal(t, must(store.Summary(ctx(t), c.ID))(t), condensation(3).Summary)
}

// AppendFork: the condensations it inherits stay its parent's, and each goes its own way afterwards.
func (s suite) AppendFork(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("p", 0, 8)))
	c := condensed(t, store, "p", condensation(6))
	b := batch("f", 7, 2)
	b.Thread.Parent, b.Thread.ForkAt, b.Thread.Seq = "p", 7, 99
	b.Thread.Condensations = []session.Condensation{c} // with its summary, which is not for the list
	ok(t, store.Append(ctx(t), b))
	own := condensed(t, store, "f", condensation(9))
	equal(t, own.ID, session.CondensationID{Thread: "f", Seq: 3})

	want := b.Thread
	want.Seq, want.Condensations = 3, []session.Condensation{listed(c), listed(own)}
	equal(t, thread(t, store, "f"), want)
	equal(t, thread(t, store, "p").Condensations, []session.Condensation{listed(c)})
	for _, id := range []session.CondensationID{c.ID, own.ID} {
		ok(t, second(store.Summary(ctx(t), id)))
	}
	is(t, second(store.Summary(ctx(t), session.CondensationID{Thread: "f", Seq: c.ID.Seq})), session.ErrNotFound)
}

// AppendOrphan: a fork without the thread whose positions it shares would be half a thread, so it does not begin.
func (s suite) AppendOrphan(t *testing.T) {
	store, b := s.fresh(t), batch("f", 7, 2)
	b.Thread.Parent, b.Thread.ForkAt = "p", 7
	b.Traces = []session.Hash{hash("trace")}
	is(t, store.Append(ctx(t), b), session.ErrStale)
	is(t, second(store.Thread(ctx(t), "f")), session.ErrNotFound)
	equal(t, lookup(t, store, []session.Hash{b.Places[0].Hash}, "f"), session.Found{Places: make([]session.Place, 1)})
	ok(t, store.Append(ctx(t), batch("p", 0, 8)))
	ok(t, store.Append(ctx(t), b))
	equal(t, thread(t, store, "f").Seq, 2)
}

// AppendLinked: a thread with a parent but no shared positions begins at 0, and so may a fork that brings them itself.
func (s suite) AppendLinked(t *testing.T) {
	store, b := s.fresh(t), batch("l", 0, 2)
	b.Thread.Parent = "p"
	ok(t, store.Append(ctx(t), b))
	equal(t, thread(t, store, "l").Parent, "p")
	whole := batch("w", 0, 9)
	whole.Thread.Parent, whole.Thread.ForkAt = "p", 7
	ok(t, store.Append(ctx(t), whole))
	equal(t, thread(t, store, "w").Seq, 9)
}

// AppendGivenFields: Seq and Condensations of a batch do not count once the thread is there.
func (s suite) AppendGivenFields(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("t", 0, 8)))
	c := condensed(t, store, "t", condensation(6))
	b := batch("t", 8, 1)
	b.Thread.Seq, b.Thread.Condensations = 500, []session.Condensation{condensation(2), condensation(3)}
	ok(t, store.Append(ctx(t), b))
	got := thread(t, store, "t")
	equal(t, got.Seq, 10)
	equal(t, got.Condensations, []session.Condensation{listed(c)})
}
