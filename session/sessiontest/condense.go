package sessiontest

import (
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func (s suite) CondenseLogged(t *testing.T) {
	store, b := s.fresh(t), batch("t", 0, 8)
	ok(t, store.Append(ctx(t), b))
	c := condensation(8)
	c.ID = session.CondensationID{Thread: "other", Seq: 77} // not the caller's to give
	got := condensed(t, store, "t", c)
	c.ID = session.CondensationID{Thread: "t", Seq: 9}
	equal(t, got, c)

	want := b.Thread
	want.Seq, want.Condensations = 9, []session.Condensation{listed(c)}
	equal(t, thread(t, store, "t"), want)
	last := session.Event{Seq: 9, Kind: session.Condensed, Tokens: c.SummaryTokens, Time: c.Time}
	equal(t, events(t, store, "t"), append(logged(b, 1), last))
	equal(t, must(store.Summary(ctx(t), got.ID))(t), c.Summary)
}

func (s suite) CondenseTwo(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("t", 0, 8)))
	one := condensed(t, store, "t", condensation(6))
	ok(t, store.Append(ctx(t), batch("t", 8, 4)))
	two := condensed(t, store, "t", condensation(11))
	equal(t, two.ID.Seq, 14)
	equal(t, thread(t, store, "t").Condensations, []session.Condensation{listed(one), listed(two)})
	var seqs []uint64
	for _, e := range events(t, store, "t") {
		if e.Kind == session.Condensed {
			seqs = append(seqs, e.Seq)
		}
	}
	equal(t, seqs, []uint64{9, 14})
}

func (s suite) CondenseUnknown(t *testing.T) {
	store := s.fresh(t)
	is(t, second(store.Condense(ctx(t), "t", condensation(8))), session.ErrNotFound)
	is(t, second(store.Thread(ctx(t), "t")), session.ErrNotFound)
	ok(t, store.Append(ctx(t), batch("t", 0, 1)))
	for _, id := range []session.CondensationID{{Thread: "t", Seq: 1}, {Thread: "t"}, {}, {Thread: "u", Seq: 1}} {
		is(t, second(store.Summary(ctx(t), id)), session.ErrNotFound)
	}
}

func (s suite) CondenseSummaryText(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("t", 0, 8)))
	for _, want := range []string{"", "short", "\x00\xff", strings.Repeat("the same line again\n", 5000)} {
		c := condensation(8)
		c.Summary = want
		c = condensed(t, store, "t", c)
		got, err := store.Summary(ctx(t), c.ID)
		ok(t, err)
		if got != want {
			t.Errorf("got %.20q, want %.20q", got, want)
		}
	}
}

func (s suite) CondenseZero(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("t", 0, 1)))
	c := condensed(t, store, "t", session.Condensation{})
	equal(t, c, session.Condensation{ID: session.CondensationID{Thread: "t", Seq: 2}})
	equal(t, thread(t, store, "t").Condensations, []session.Condensation{c})
}

func (s suite) CondensePrepared(t *testing.T) {
	store := s.fresh(t)
	is(t, store.Prepare(ctx(t), "t", condensation(8)), session.ErrNotFound)
	ok(t, store.Append(ctx(t), batch("t", 0, 8)))
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
	condensed(t, store, "t", condensation(7))
	is(t, second(store.Prepared(ctx(t), "t")), session.ErrNotFound)
}

// CondenseAside: an aside is listed apart from condensations, answers no request for one, and leaves what is prepared as it is.
func (s suite) CondenseAside(t *testing.T) {
	store := s.fresh(t)
	ok(t, store.Append(ctx(t), batch("t", 0, 8)))
	one := condensed(t, store, "t", condensation(6))
	ok(t, store.Prepare(ctx(t), "t", condensation(8)))
	archive, can := store.(session.Archive)
	if can {
		ok(t, archive.Request(ctx(t), "t", clock))
	}
	before := thread(t, store, "t")
	c := session.Condensation{Prefix: 9, Hash: hash("t", "answer"), Summary: "[[{}]]", Reason: session.ReasonAside, Time: clock}
	c = condensed(t, store, "t", c)
	want := before
	want.Seq, want.Asides = c.ID.Seq, []session.Condensation{listed(c)}
	equal(t, thread(t, s.replica(t, store), "t"), want)
	equal(t, want.Condensations, []session.Condensation{listed(one)})
	log := events(t, store, "t")
	equal(t, log[len(log)-1], session.Event{Seq: c.ID.Seq, Kind: session.HiddenCalls, Time: clock})
	text, err := s.replica(t, store).Summary(ctx(t), c.ID)
	ok(t, err)
	equal(t, text, c.Summary)
	_, err = store.Prepared(ctx(t), "t")
	ok(t, err)

	fork := batch("fork", 8, 2)
	fork.Thread.Parent, fork.Thread.ForkAt, fork.Thread.Condensations, fork.Thread.Asides = "t", 8, want.Condensations, want.Asides
	ok(t, store.Append(ctx(t), fork))
	equal(t, thread(t, store, "fork").Asides, want.Asides)
	equal(t, thread(t, store, "fork").Condensations, want.Condensations)
}
