package boltstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestExpiredNamesAndTotalsDoNotCount: names and totals expire also in a store that is never swept.
func TestExpiredNamesAndTotalsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := start(t, Options{}), t.Context()
		defer s.Close()
		must(t, s.Append(ctx, twoEvents("t", 0)))
		write := func(number uint64) {
			must(t, s.WriteJournal(ctx, session.JournalBatch{
				Writer: "w", Number: number, Totals: []session.Total{{Period: "d", Row: "r", Values: []int64{5}}},
				Entries: []session.JournalEntry{{Session: "s", Name: session.Hash{byte(number)}, Value: []byte("x")}},
			}))
		}
		write(1)
		past(session.JournalNamesFor - time.Hour)
		must(t, second(s.FindJournal(ctx, session.Hash{1})))
		past(2 * 24 * time.Hour)
		missing(t, second(s.FindJournal(ctx, session.Hash{1})))
		past(session.TotalsFor)
		if all, err := s.Totals(ctx, "d"); err != nil || len(all) != 0 {
			t.Errorf("totals %v, %v, which have expired", all, err)
		}
		write(2)
		all, err := s.Totals(ctx, "d")
		must(t, err)
		if len(all) != 1 || all[0].Values[0] != 5 {
			t.Errorf("totals %v, want only what was added after the old ones had expired", all)
		}
	})
}
