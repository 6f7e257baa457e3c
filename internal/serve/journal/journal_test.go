package journal_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
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
	one, err := j.Step(t.Context(), "r3")
	if err != nil || one != steps[1196] {
		t.Errorf("%+v, %v", one, err)
	}
	if _, err := j.Step(t.Context(), "none"); !errors.Is(err, session.ErrNotFound) {
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
