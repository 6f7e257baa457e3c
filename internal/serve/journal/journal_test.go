package journal_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/journal"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// failing is a journal's store that writes a batch and still fails, or does not write it.
type failing struct {
	session.Journal
	mu       sync.Mutex
	failures int // that are left
	writes   bool
}

var errAway = errors.New("away")

func (f *failing) WriteJournal(ctx context.Context, b session.JournalBatch) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures == 0 {
		return f.Journal.WriteJournal(ctx, b)
	}
	f.failures--
	if f.writes {
		_ = f.Journal.WriteJournal(ctx, b)
	}
	return errAway
}

// open returns a store with a session "s".
func open(t *testing.T) *boltstore.Store {
	t.Helper()
	store, err := boltstore.Open(boltstore.Options{Path: t.TempDir() + "/store.db"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := store.Append(t.Context(), session.Batch{Thread: session.Thread{ID: "t", Session: "s", Tenant: "acme"}}); err != nil {
		t.Fatal(err)
	}
	return store
}

func record(id string) *proxy.Record {
	return &proxy.Record{
		Tenant: "acme", Asked: proxy.Asked{ID: id}, Status: 200, Times: proxy.Times{Begun: time.Now()}, Call: proxy.Call{Status: 200},
		Turn: &proxy.TurnRecord{Session: "s", Thread: "t", After: session.Size{Events: 1, Tokens: 10}},
	}
}

func TestStepsAreReadAtOnceAndInOrder(t *testing.T) {
	j := journal.New(journal.Options{Store: open(t), Timeout: time.Minute, Now: time.Now, Missed: func(string, account.Miss) {}})
	for i := range 1200 {
		j.Ended(t.Context(), record(fmt.Sprint("r", i)))
	}
	steps, err := j.Steps(t.Context(), "s", 0, 2000)
	if err != nil || len(steps) != 1200 || steps[0].Request != "r1199" || steps[1199].Request != "r0" {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	one, err := j.Step(t.Context(), "acme", "r3")
	if err != nil || one != steps[1196] {
		t.Errorf("%+v, %v", one, err)
	}
	if _, err := j.Step(t.Context(), "acme", "none"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("an unknown request: %v", err)
	}
}

func TestNoStepIsLostWhileTheStoreIsAwayForAWhile(t *testing.T) {
	store := &failing{Journal: open(t), failures: 2}
	j := journal.New(journal.Options{Store: store, Timeout: time.Minute, Now: time.Now, Missed: func(string, account.Miss) {}, Lost: func(string) {}})
	for i := range 3 {
		j.Ended(t.Context(), record(fmt.Sprint("r", i)))
		err := j.Flush(t.Context())
		if away := i < 2; errors.Is(err, errAway) != away {
			t.Errorf("write %d: %v", i, err)
		}
	}
	steps, err := j.Steps(t.Context(), "s", 0, 10)
	if err != nil || len(steps) != 3 || steps[0].Request != "r2" {
		t.Errorf("%d steps, %v", len(steps), err)
	}
}

// TestCloseWritesWhenTimeIsUp: a shutdown may have used up its time before the journal is closed.
func TestCloseWritesWhenTimeIsUp(t *testing.T) {
	store := open(t)
	j := journal.New(journal.Options{Store: store, Timeout: time.Minute, Now: time.Now, Missed: func(string, account.Miss) {}, Lost: func(string) {}})
	j.Ended(t.Context(), record("r"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Close(ended); err != nil {
		t.Error(err)
	}
	if entries, err := store.ReadJournal(t.Context(), "s", 0, 10); err != nil || len(entries) != 1 {
		t.Errorf("%d steps, %v", len(entries), err)
	}
}

func TestStepsBeyondTheQueueAreCounted(t *testing.T) {
	store := &failing{Journal: open(t), failures: 1 << 30}
	lost := map[string]int{}
	j := journal.New(journal.Options{Store: store, Timeout: time.Minute, Now: time.Now, Missed: func(string, account.Miss) {}, Lost: func(op string) { lost[op]++ }})
	for i := range 21_000 {
		j.Ended(t.Context(), record(fmt.Sprint("r", i)))
	}
	if lost["journal_queue_full"] == 0 {
		t.Error("no lost step is counted")
	}
	if err := j.Close(t.Context()); !errors.Is(err, errAway) {
		t.Errorf("closing: %v", err)
	}
}

// rows returns what a journal's totals are of all days until a time.
func rows(t *testing.T, until time.Time, count func(j *journal.Journal)) []account.Row {
	t.Helper()
	j := journal.New(journal.Options{Store: open(t), Timeout: time.Minute, Now: time.Now, Missed: func(string, account.Miss) {}, Lost: func(string) {}})
	count(j)
	all, err := j.Rows(t.Context(), time.Now().AddDate(0, 0, -1), until)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestReportedUsageIsInTheAccounts(t *testing.T) {
	now := time.Now()
	usage := session.Usage{Input: 1000, Cached: 700, Written: 200, WrittenLong: 100, Output: 20}
	report := &proxy.Record{
		Tenant: "team", Model: "m", Asked: proxy.Asked{Agent: "gw/1"}, Status: 200, Times: proxy.Times{Ended: now}, Plug: "usage",
		Reported: &proxy.Reported{Bill: proxy.Bill{Usage: usage, Reported: true, Priced: true, Pico: 5}, Arm: "condensed"},
	}
	unpriced := *report
	unpriced.Reported = &proxy.Reported{Bill: proxy.Bill{Usage: usage, Reported: true}, Arm: "condensed"}
	all := rows(t, now, func(j *journal.Journal) {
		j.Ended(t.Context(), report)
		j.Ended(t.Context(), &unpriced)
	})
	want := account.Sums{Input: 2000, Cached: 1400, Written: 400, WrittenLong: 200, Output: 40, Charged: 5, Unpriced: 1}
	if len(all) != 1 || all[0].Sums != want || all[0].Tenant != "team" || all[0].Model != "m" || all[0].Agent != "gw" || all[0].Arm != "condensed" {
		t.Errorf("%+v, want %+v", all, want)
	}
}

func TestAGatewaysStepThatSavedNothingIsPriced(t *testing.T) {
	for _, priced := range []bool{true, false} {
		r := record("r")
		r.Plug, r.Turn.Priced, r.Turn.Before = "litellm", priced, session.Size{Tokens: 10}
		if sums := journal.SumsOf(r); (sums.UnpricedSent == 0) != priced || sums.Sent != 10 {
			t.Errorf("priced %v: %+v", priced, sums)
		}
	}
}

func TestASummaryOfASubscriptionIsNotBilled(t *testing.T) {
	for _, plan := range []bool{true, false} {
		call := proxy.OwnCall{Tenant: "acme", Model: "m", Call: limit.Call{Input: 100, Output: 5, USD: 1, Pico: 1e12, Known: true, Plan: plan}}
		report := account.NewReport("", "", nil, rows(t, time.Now(), func(j *journal.Journal) { j.Called(call) }))
		own, unbilled := &report.Total.Own, &report.Total.Plan
		billed := report.Total.USD.Bill != 0
		if billed == plan || (unbilled.Input == 100 && unbilled.Output == 5) != plan || (own.Input == 100) == plan {
			t.Errorf("plan %v: own %+v, subscriptions %+v, bill %v", plan, own, unbilled, report.Total.USD)
		}
	}
}

func TestDaysToComeDoNotHideEarlierOnes(t *testing.T) {
	all := rows(t, time.Now().AddDate(2, 0, 0), func(j *journal.Journal) {
		j.Called(proxy.OwnCall{Tenant: "acme", Call: limit.Call{Input: 1, Known: true}})
	})
	if len(all) != 1 {
		t.Errorf("%d rows, want 1", len(all))
	}
}
