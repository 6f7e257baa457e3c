package sessiontest

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// CondenseLogged: every replica sees a condensation at once, and the messages before it.
func (s suite) CondenseLogged(t *testing.T) {
	store, other := s.pair(t)
	b := batch("t", 0, 8)
	ok(t, store.Append(ctx(t), b))
	c := condensation(8)
	c.ID = session.CondensationID{Thread: "other", Seq: 77} // ignored: the store sets it
	got := must(store.Condense(ctx(t), "t", c))(t)
	c.ID = session.CondensationID{Thread: "t", Seq: 9}
	equal(t, got, c)

	want := b.Thread
	want.Seq, want.Condensations = 9, []session.Condensation{listed(c)}
	equal(t, thread(t, other, "t"), want)
	last := session.Event{Seq: 9, Kind: session.Condensed, Tokens: c.SummaryTokens, Time: c.Time}
	equal(t, events(t, other, "t"), append(logged(b, 1), last))
	equal(t, must(other.Summary(ctx(t), got.ID))(t), c.Summary)
}

func (s suite) CondenseZero(t *testing.T) {
	store := s.begun(t, 1)
	c := must(store.Condense(ctx(t), "t", session.Condensation{}))(t)
	equal(t, c, session.Condensation{ID: session.CondensationID{Thread: "t", Seq: 2}})
	equal(t, thread(t, store, "t").Condensations, []session.Condensation{c})
}

func (s suite) CondensePrepared(t *testing.T) {
	store := s.begun(t, 8)
	is(t, second(store.Prepared(ctx(t), "t")), session.ErrNotFound)
	before := thread(t, store, "t")
	for _, prefix := range []int{6, 8} {
		c := condensation(prefix)
		ok(t, store.Prepare(ctx(t), "t", c))
		c.ID = session.CondensationID{Thread: "t"}
		equal(t, must(s.replica(t, store).Prepared(ctx(t), "t"))(t), c)
	}
	equal(t, thread(t, store, "t"), before)
	is(t, second(store.Summary(ctx(t), session.CondensationID{Thread: "t"})), session.ErrNotFound)
	ok(t, second(store.Condense(ctx(t), "t", condensation(7))))
	is(t, second(store.Prepared(ctx(t), "t")), session.ErrNotFound)
}

// CondenseAside: an aside is listed apart from condensations, answers no request for one, and does not delete a prepared one.
func (s suite) CondenseAside(t *testing.T) {
	store := s.begun(t, 8)
	one := must(store.Condense(ctx(t), "t", condensation(6)))(t)
	ok(t, store.Prepare(ctx(t), "t", condensation(8)))
	ok(t, store.Request(ctx(t), "t", clock))
	before := thread(t, store, "t")
	c := session.Condensation{Prefix: 9, Hash: hash("t", "answer"), Summary: "[[{}]]", Reason: session.ReasonAside, Time: clock}
	c = must(store.Condense(ctx(t), "t", c))(t)
	want := before
	want.Seq, want.Asides = c.ID.Seq, []session.Condensation{listed(c)}
	equal(t, thread(t, s.replica(t, store), "t"), want)
	equal(t, want.Condensations, []session.Condensation{listed(one)})
	log := events(t, store, "t")
	equal(t, log[len(log)-1], session.Event{Seq: c.ID.Seq, Kind: session.HiddenCalls, Time: clock})
	equal(t, must(s.replica(t, store).Summary(ctx(t), c.ID))(t), c.Summary)
	ok(t, second(store.Prepared(ctx(t), "t")))

	b := fork("t", 8, "fork", 2)
	b.Thread.Condensations, b.Thread.Asides = want.Condensations, want.Asides
	ok(t, store.Append(ctx(t), b))
	equal(t, thread(t, store, "fork").Asides, want.Asides)
	equal(t, thread(t, store, "fork").Condensations, want.Condensations)
}
