package sessiontest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// entries returns n entries for a session's journal.
func entries(id session.SessionID, n int) (all []session.JournalEntry) {
	for i := range n {
		all = append(all, session.JournalEntry{Session: id, Value: fmt.Appendf(nil, "entry %d of %s", i+1, id)})
	}
	return all
}

func journal(writer string, number uint64, all ...session.JournalEntry) session.JournalBatch {
	return session.JournalBatch{Writer: writer, Number: number, Entries: all}
}

// wantJournal checks that a page of a session's journal has the entries numbered from high down to low.
func wantJournal(t *testing.T, store session.Backend, id session.SessionID, before uint64, limit, high, low int) {
	t.Helper()
	page := must(store.ReadJournal(ctx(t), id, before, limit))(t)
	if len(page) != high-low+1 {
		t.Fatalf("%d entries before %d, want %d to %d", len(page), before, high, low)
	}
	for i, e := range page {
		equal(t, e, session.JournalEntry{Session: id, Number: uint64(high - i), Value: fmt.Appendf(nil, "entry %d of %s", high-i, id)})
	}
}

func (s suite) JournalPages(t *testing.T) {
	store := s.begun(t, 2)
	ok(t, store.Append(ctx(t), batch("u", 0, 2)))
	equal(t, len(must(store.ReadJournal(ctx(t), "s-t", 0, 10))(t)), 0)
	all := entries("s-t", 400)
	ok(t, store.WriteJournal(ctx(t), journal("w", 1, slices.Concat(all[:1], entries("s-u", 2))...)))
	ok(t, store.WriteJournal(ctx(t), journal("w", 2, all[1:350]...)))
	ok(t, store.WriteJournal(ctx(t), journal("w", 3, all[350:]...)))
	other := s.replica(t, store)
	wantJournal(t, other, "s-t", 0, 1000, 400, 1)
	wantJournal(t, other, "s-t", 0, 5, 400, 396)
	wantJournal(t, other, "s-t", 396, 300, 395, 96)
	wantJournal(t, other, "s-t", 129, 200, 128, 1)
	wantJournal(t, other, "s-t", 2, 200, 1, 1)
	wantJournal(t, other, "s-t", 1000, 1, 400, 400)
	wantJournal(t, other, "s-u", 0, 10, 2, 1)
	equal(t, len(must(other.ReadJournal(ctx(t), "s-t", 1, 10))(t)), 0)
}

// JournalRepeats: a batch that is written again counts once, also if another process has written to the session meanwhile.
func (s suite) JournalRepeats(t *testing.T) {
	store := s.begun(t, 2)
	all := entries("s-t", 100)
	for i := 0; i < 40; i += 2 {
		ok(t, store.WriteJournal(ctx(t), journal("w", uint64(i), all[i])))
		ok(t, store.WriteJournal(ctx(t), journal("v", uint64(i), all[i+1])))
		ok(t, store.WriteJournal(ctx(t), journal("w", uint64(i), all[i])))
		ok(t, store.WriteJournal(ctx(t), journal("v", uint64(i), all[i+1])))
	}
	wantJournal(t, store, "s-t", 0, 1000, 40, 1)
	for i := range 40 { // no number of writers makes a record too large
		ok(t, store.WriteJournal(ctx(t), journal(fmt.Sprint("w", i), 1, all[40+i])))
	}
	ok(t, store.WriteJournal(ctx(t), journal("w39", 1, all[79])))
	wantJournal(t, store, "s-t", 0, 1000, 80, 1)
}

// JournalOfUnknownSessions: a session that was deleted does not come back by what is written about it.
func (s suite) JournalOfUnknownSessions(t *testing.T) {
	store := s.begun(t, 2)
	unknown := entries("unknown", 3)
	unknown[1].Name = hash("a")
	ok(t, store.WriteJournal(ctx(t), journal("w", 1, slices.Concat(unknown, entries("s-t", 1))...)))
	equal(t, len(must(store.ReadJournal(ctx(t), "unknown", 0, 10))(t)), 0)
	is(t, second(store.FindJournal(ctx(t), hash("a"))), session.ErrNotFound)
	wantJournal(t, store, "s-t", 0, 10, 1, 1)
	if s.hooks.Dump == nil {
		return
	}
	ok(t, store.Forget(ctx(t), "s-t"))
	ok(t, store.WriteJournal(ctx(t), journal("w", 2, entries("s-t", 1)...)))
	equal(t, len(must(store.ReadJournal(ctx(t), "s-t", 0, 10))(t)), 0)
	ok(t, store.Append(ctx(t), batch("t", 0, 2)))
	ok(t, store.WriteJournal(ctx(t), journal("w", 3, entries("s-t", 2)...)))
	wantJournal(t, store, "s-t", 0, 10, 2, 1)
}

// JournalIsBounded: the oldest entries go, at least MaxJournal stay.
func (s suite) JournalIsBounded(t *testing.T) {
	store := s.begun(t, 2)
	all := entries("s-t", session.MaxJournal+1000)
	for i, some := range slices.Collect(slices.Chunk(all, 500)) {
		ok(t, store.WriteJournal(ctx(t), journal("w", uint64(i), some...)))
	}
	page := must(store.ReadJournal(ctx(t), "s-t", 0, 2*len(all)))(t)
	if len(page) < session.MaxJournal || len(page) > session.MaxJournal+500 {
		t.Errorf("%d entries are kept", len(page))
	}
	equal(t, string(page[len(page)-1].Value), fmt.Sprintf("entry %d of s-t", len(all)-len(page)+1))
}

func (s suite) JournalFinds(t *testing.T) {
	store := s.begun(t, 2)
	ok(t, store.Append(ctx(t), batch("u", 0, 2)))
	is(t, second(store.FindJournal(ctx(t), hash("a"))), session.ErrNotFound)
	of := func(id session.SessionID, name session.Hash) session.JournalEntry {
		return session.JournalEntry{Session: id, Name: name, Value: []byte("x")}
	}
	ok(t, store.WriteJournal(ctx(t), journal("w", 1, of("s-t", hash("a")), of("s-u", hash("b")), of("s-t", hash("c")))))
	ok(t, store.WriteJournal(ctx(t), journal("w", 2, of("s-u", hash("c")))))
	other := s.replica(t, store)
	for name, want := range map[string]session.SessionID{"a": "s-t", "b": "s-u", "c": "s-u"} {
		equal(t, must(other.FindJournal(ctx(t), hash(name)))(t), want)
	}
}

func total(period, row string, values ...int64) session.Total {
	return session.Total{Period: period, Row: row, Values: values}
}

// wantTotals checks the totals of a period, which are in the order of their rows.
func wantTotals(t *testing.T, store session.Backend, period string, want ...session.Total) {
	t.Helper()
	got := must(store.Totals(ctx(t), period))(t)
	slices.SortFunc(got, func(a, b session.Total) int { return cmp.Compare(a.Row, b.Row) })
	equal(t, got, want)
}

func (s suite) TotalsAdd(t *testing.T) {
	store := s.fresh(t)
	wantTotals(t, store, "2026-01-02")
	write := func(number uint64, all ...session.Total) {
		ok(t, store.WriteJournal(ctx(t), session.JournalBatch{Writer: "w", Number: number, Totals: all}))
	}
	write(1, total("2026-01-02", "a\x00b", 1, -2, 1<<60), total("2026-01-02", "a", 5), total("2026-01-03", "a", 7))
	write(2, total("2026-01-02", "a\x00b", 1, 1, 1, 4), total("2026-01-02", "a", 1, 1))
	write(2, total("2026-01-02", "a\x00b", 1, 1, 1, 4), total("2026-01-02", "a", 1, 1)) // a repetition changes nothing
	other := s.replica(t, store)
	wantTotals(t, other, "2026-01-02", total("2026-01-02", "a", 6, 1), total("2026-01-02", "a\x00b", 2, -1, 1<<60+1, 4))
	wantTotals(t, other, "2026-01-03", total("2026-01-03", "a", 7))
	wantTotals(t, other, "2026-01")
}

// TotalsAtOnce: replicas that add at once lose nothing.
func (s suite) TotalsAtOnce(t *testing.T) {
	store, other := s.pair(t)
	together(t, 80, func(i int, store session.Backend) error {
		return store.WriteJournal(ctx(t), session.JournalBatch{Writer: fmt.Sprint(i), Number: 1, Totals: []session.Total{total("d", "r", 1, 3)}})
	}, store, other)
	wantTotals(t, store, "d", total("d", "r", 80, 240))
}

func (s suite) JournalSurvivesARestart(t *testing.T) {
	store := s.open(t)
	ok(t, store.Append(ctx(t), batch("t", 0, 2)))
	b := journal("w", 1, entries("s-t", 3)...)
	b.Entries[2].Name, b.Totals = hash("a"), []session.Total{total("d", "r", 1, 3)}
	ok(t, store.WriteJournal(ctx(t), b))
	store = closing(t, s.hooks.Reopen(t, store))
	wantJournal(t, store, "s-t", 0, 10, 3, 1)
	wantTotals(t, store, "d", total("d", "r", 1, 3))
	equal(t, must(store.FindJournal(ctx(t), hash("a")))(t), "s-t")
}
