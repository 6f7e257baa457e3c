package sessiontest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// AppendStale: a batch that does not fit leaves nothing behind, not even its index entries.
func (s suite) AppendStale(t *testing.T) {
	store := s.begun(t, 3)
	before, log := thread(t, store, "t"), events(t, store, "t")
	for _, at := range []int{0, 2, 4, -1} {
		stale := batch("t", at, 7)
		stale.Key, stale.Traces.Lasting = "other", []session.Hash{hash("trace")}
		is(t, store.Append(ctx(t), stale), session.ErrStale)
	}
	is(t, store.Append(ctx(t), batch("t", 0, 3)), session.ErrStale) // the same batch once more
	equal(t, thread(t, store, "t"), before)
	equal(t, events(t, store, "t"), log)
	equal(t, lookup(t, store, []session.Hash{hash("t", 5)}, "").Places, make([]session.Place, 1))
	equal(t, must(store.Session(ctx(t), "s-t"))(t).Key, "key-t")
	equal(t, must(store.Trace(ctx(t), []session.Hash{hash("trace")}))(t), make([]session.Place, 1))
}

// AppendOrphan: a thread cannot begin in the middle, nor without the parent whose positions it shares.
func (s suite) AppendOrphan(t *testing.T) {
	store, orphan := s.fresh(t), fork("p", 7, "f", 2)
	orphan.Traces = session.Traces{Lasting: []session.Hash{hash("trace")}}
	noFork, misplaced := orphan, orphan
	noFork.Thread.Parent, noFork.Thread.ForkAt = "", 0
	misplaced.Thread.ForkAt = 8
	for _, b := range []session.Batch{noFork, misplaced, orphan} {
		is(t, store.Append(ctx(t), b), session.ErrStale)
		is(t, second(store.Thread(ctx(t), "f")), session.ErrNotFound)
		is(t, second(store.Session(ctx(t), "s-f")), session.ErrNotFound)
		found := lookup(t, store, []session.Hash{b.Places[0].Hash}, "f", b.Traces.Lasting...)
		equal(t, found, session.Found{Places: make([]session.Place, 1), Traced: make([]session.Place, 1)})
	}
	ok(t, store.Append(ctx(t), batch("p", 0, 8)))
	is(t, store.Append(ctx(t), misplaced), session.ErrStale)
	ok(t, store.Append(ctx(t), orphan))
	equal(t, thread(t, store, "f").Seq, 2)
}

// AppendLogOnly: entries without a position advance Seq but not Len.
func (s suite) AppendLogOnly(t *testing.T) {
	store, b := s.begun(t, 1), batch("t", 1, 0)
	b.Events = []session.Event{{Kind: session.Requested, Time: clock}, {Kind: session.System, Digest: hash("s"), Time: clock, Payload: []byte("{}")}}
	ok(t, store.Append(ctx(t), b))
	ok(t, store.Append(ctx(t), batch("t", 1, 1)))
	got := thread(t, store, "t")
	equal(t, [2]uint64{uint64(got.Len), got.Seq}, [2]uint64{2, 4})
	equal(t, events(t, store, "t")[1:3], logged(b, 2))
}

// AppendEmpty: a thread may begin without messages and without a session.
func (s suite) AppendEmpty(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), session.Batch{Thread: session.Thread{ID: "t", Created: clock}}))
	equal(t, thread(t, store, "t"), session.Thread{ID: "t", Requests: 1, Created: clock})
	equal(t, len(events(t, store, "t")), 0)
	b := batch("t", 0, 1)
	b.Thread.Session = ""
	ok(t, store.Append(ctx(t), b))
	b.Thread.Seq, b.Thread.Requests = 1, 2
	equal(t, thread(t, store, "t"), b.Thread)
}

// AppendStrangeIDs: an ID that is empty or too long is refused. No other one acts as a part or a pattern of another.
func (s suite) AppendStrangeIDs(t *testing.T) {
	store := s.fresh(t)
	for _, id := range []session.ThreadID{"", session.ThreadID(strings.Repeat("x", 100_000))} {
		if err := store.Append(ctx(t), batch(id, 0, 1)); err == nil || errors.Is(err, session.ErrUnavailable) {
			t.Errorf("an id of %d bytes: %v", len(id), err)
		}
	}
	ids := []session.ThreadID{"a", "a:", "}", "{", "{a}", "}{", "a}b", "a%7Db", "%7D", "\x00", "\x00\x00", "\xff\xfe", "*", "a b", "ä"}
	for i, id := range ids {
		ok(t, store.Append(ctx(t), batch(id, 0, i+1)))
	}
	for i, id := range ids {
		got := thread(t, store, id)
		equal(t, got.ID, id)
		equal(t, got.Len, i+1)
		equal(t, events(t, store, id), logged(batch(id, 0, i+1), 1))
		equal(t, must(store.Session(ctx(t), got.Session))(t).Threads, []session.ThreadID{id})
	}
}

func (s suite) AppendSession(t *testing.T) {
	store := s.fresh(t)
	all := []session.ThreadID{"z", "a", "m"}
	for i, id := range all {
		b := batch(id, 0, i+1)
		b.Thread.Session, b.Key = "ses", "key"
		ok(t, store.Append(ctx(t), b))
	}
	again := batch("z", 1, 8)
	again.Thread.Session, again.Thread.Tenant, again.Key = "ses", "", ""
	ok(t, store.Append(ctx(t), again))
	want := session.Session{ID: "ses", Tenant: "acme", Key: "key", Threads: all, Requests: 4, Created: clock, Seen: again.Thread.Seen}
	equal(t, must(store.Session(ctx(t), "ses"))(t), want)
	equal(t, thread(t, store, "z").Requests, 2)
}

// AppendNames: a session keeps the key that began it, and lists further keys as names by which it is found too, up to a limit. A stale batch
// adds no name and is not counted.
func (s suite) AppendNames(t *testing.T) {
	store := s.fresh(t)
	send := func(id session.ThreadID, at int, key string) error {
		b := batch(id, at, 1)
		b.Thread.Session, b.Key = "ses", key
		return store.Append(ctx(t), b)
	}
	ok(t, send("main", 0, ""))
	ok(t, send("main", 1, "first"))
	var names []string
	for i := range session.MaxNames + 3 {
		names = append(names, fmt.Sprintf("child %d", session.MaxNames-i))
		ok(t, send("child", i, names[i]))
		ok(t, send("main", 2+i, []string{"first", "", names[i]}[i%3]))
	}
	is(t, send("child", 1, "stale"), session.ErrStale)
	is(t, send("orphan", 1, "stale"), session.ErrStale)
	ses := must(store.Session(ctx(t), "ses"))(t)
	equal(t, ses.Key, "first")
	equal(t, ses.Names, names[:session.MaxNames])
	equal(t, ses.Requests, 2+2*len(names))
	equal(t, thread(t, store, "child").Requests, len(names))
	for key, found := range map[string]int{"first": 1, names[0]: 1, names[session.MaxNames-1]: 1, names[session.MaxNames]: 0, "stale": 0} {
		equal(t, len(listing(t, store, session.SessionQuery{Key: key, Limit: 5})), found)
	}
	ok(t, store.Forget(ctx(t), "ses"))
	ok(t, send("main", 0, "again"))
	ses = must(store.Session(ctx(t), "ses"))(t)
	equal(t, ses.Key, "again")
	equal(t, len(ses.Names), 0)
	equal(t, ses.Requests, 1)
}

// AppendPayloads: payloads and summaries are any bytes.
func (s suite) AppendPayloads(t *testing.T) {
	store, b := s.begun(t, 8), batch("t", 8, 0)
	for _, p := range []string{
		"", "short", "{}", "\x00", "\xff\xfe\x00\xc3(", strings.Repeat("\x00", 5000), strings.Repeat(`{"role":"tool"}`+"\n", 20_000),
	} {
		b.Events = append(b.Events, session.Event{Kind: session.Agent, Time: clock, Payload: []byte(p)})
	}
	ok(t, store.Append(ctx(t), b))
	for i, e := range events(t, store, "t")[8:] {
		c, want := condensation(8), string(b.Events[i].Payload)
		c.Summary = want
		c = must(store.Condense(ctx(t), "t", c))(t)
		if summary := must(store.Summary(ctx(t), c.ID))(t); string(e.Payload) != want || summary != want {
			t.Errorf("%d: got a payload of %d bytes and a summary of %d, want %d", i, len(e.Payload), len(summary), len(want))
		}
	}
}

func (s suite) AppendNoContent(t *testing.T) {
	store, b := closing(t, s.hooks.WithoutContent(t)), batch("t", 0, 3)
	ok(t, store.Append(ctx(t), b))
	c := must(store.Condense(ctx(t), "t", condensation(3)))(t)
	want := logged(b, 1)
	for i := range want {
		want[i].Payload = nil
	}
	equal(t, events(t, store, "t")[:3], want)
	equal(t, must(store.Summary(ctx(t), c.ID))(t), condensation(3).Summary)
}

// AppendFork: the condensations that a fork inherits still belong to its parent. Later ones belong to one of the two only.
func (s suite) AppendFork(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("p", 0, 8)))
	c := must(store.Condense(ctx(t), "p", condensation(6)))(t)
	b := fork("p", 7, "f", 2)
	b.Thread.Seq = 99
	b.Thread.Condensations = []session.Condensation{c} // with its summary, which the list does not keep
	ok(t, store.Append(ctx(t), b))
	own := must(store.Condense(ctx(t), "f", condensation(9)))(t)
	equal(t, own.ID, session.CondensationID{Thread: "f", Seq: 3})

	want := b.Thread
	want.Seq, want.Requests, want.Condensations = 3, 1, []session.Condensation{listed(c), listed(own)}
	equal(t, thread(t, store, "f"), want)
	equal(t, thread(t, store, "p").Condensations, []session.Condensation{listed(c)})
	for _, id := range []session.CondensationID{c.ID, own.ID} {
		ok(t, second(store.Summary(ctx(t), id)))
	}
	is(t, second(store.Summary(ctx(t), session.CondensationID{Thread: "f", Seq: c.ID.Seq})), session.ErrNotFound)
}

// AppendShared: a thread whose content is stored in other threads cannot begin if those are gone. Its messages share an entry.
func (s suite) AppendShared(t *testing.T) {
	store, b := s.fresh(t), sharing("t", "h", 5)
	is(t, store.Append(ctx(t), b), session.ErrStale)
	is(t, second(store.Thread(ctx(t), "t")), session.ErrNotFound)
	equal(t, lookup(t, store, []session.Hash{b.Places[0].Hash}, "").Places, make([]session.Place, 1))
	ok(t, store.Append(ctx(t), batch("h", 0, 5)))
	ok(t, store.Append(ctx(t), b))
	b.Thread.Seq, b.Thread.Requests = 1, 1
	equal(t, thread(t, store, "t"), b.Thread)
	want := slices.Clone(b.Events)
	for i := range want {
		want[i].Seq = 1
	}
	equal(t, events(t, store, "t"), want)
	got := must(store.Events(ctx(t), "t", 1, 1))(t)
	ok(t, session.ReadContent(ctx(t), store, got, math.MaxInt))
	for i, e := range events(t, store, "h") {
		equal(t, got[i].Payload, e.Payload)
	}
	equal(t, len(got), 5)
	equal(t, len(must(store.Events(ctx(t), "t", 2, 1))(t)), 0)
}

// AppendLinked: a thread with a parent may begin at 0, whether it shares no positions or brings the shared ones itself.
func (s suite) AppendLinked(t *testing.T) {
	store := s.fresh(t)
	for id, forkAt := range map[session.ThreadID]int{"linked": 0, "whole": 7} {
		b := batch(id, 0, 9)
		b.Thread.Parent, b.Thread.ForkAt = "p", forkAt
		ok(t, store.Append(ctx(t), b))
		b.Thread.Seq, b.Thread.Requests = 9, 1
		equal(t, thread(t, store, id), b.Thread)
	}
}
