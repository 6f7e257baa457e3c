package session_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// bareStore opens a store without content.
func bareStore(t *testing.T) session.Backend {
	t.Helper()
	store, err := boltstore.Open(boltstore.Options{Path: filepath.Join(t.TempDir(), "test.db")})
	must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// began begins a thread in a store, as at a time.
func began(t *testing.T, store session.Backend, created time.Time) {
	t.Helper()
	must(t, store.Append(t.Context(), session.Batch{Thread: session.Thread{ID: "t", Session: "s", Tenant: "x", Len: 1, Created: created}, Events: []session.Event{{Pos: 1}}}))
}

func summarised(text string, at time.Time) session.Condensation {
	return session.Condensation{ID: session.CondensationID{Thread: "t"}, Prefix: 1, Summary: text, SummaryTokens: 3, Reason: session.ReasonTokens, Time: at}
}

// TestTextsAreNotStored checks where the texts of condensations are: the process that made them has them, the store has nothing of them, and
// so has another replica.
func TestTextsAreNotStored(t *testing.T) {
	store, now := bareStore(t), time.Now()
	one, other := session.WithoutRecords(store), session.WithoutRecords(store)
	began(t, store, now)
	must(t, one.Prepare(t.Context(), "t", summarised("prepared words", now)))
	if c, err := one.Prepared(t.Context(), "t"); err != nil || c.Summary != "prepared words" || c.ID.Thread != "t" {
		t.Errorf("%+v, %v", c, err)
	}
	for name, s := range map[string]session.Backend{"the store": store, "another replica": other} {
		if c, err := s.Prepared(t.Context(), "t"); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s has what was prepared: %+v, %v", name, c, err)
		}
	}
	c, err := one.Condense(t.Context(), "t", summarised("logged words", now))
	if err != nil || c.Summary != "logged words" || c.ID.Seq == 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	if text, err := one.Summary(t.Context(), c.ID); err != nil || text != "logged words" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := store.Summary(t.Context(), c.ID); err != nil || text != "" {
		t.Errorf("the store has %q, %v", text, err)
	}
	if text, err := other.Summary(t.Context(), c.ID); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("another replica has %q, %v", text, err)
	}
	if c, err := one.Prepared(t.Context(), "t"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("what was prepared is left after a condensation: %+v, %v", c, err)
	}
}

// TestTextsOfADeletedThreadAreNotShown deletes a thread that begins again with the same id, and whose first condensation has the same number. It
// gets nothing of what was made for the earlier one.
func TestTextsOfADeletedThreadAreNotShown(t *testing.T) {
	store, now := bareStore(t), time.Now()
	one := session.WithoutRecords(store)
	began(t, store, now)
	made, err := one.Condense(t.Context(), "t", summarised("old words", now))
	must(t, err)
	must(t, one.Prepare(t.Context(), "t", summarised("old prepared words", now)))
	must(t, one.Forget(t.Context(), "s"))
	if text, err := one.Summary(t.Context(), made.ID); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a deleted thread has %q, %v", text, err)
	}
	began(t, store, now.Add(time.Hour))
	again, err := session.WithoutRecords(store).Condense(t.Context(), "t", summarised("new words", now.Add(time.Hour)))
	if err != nil || again.ID != made.ID {
		t.Fatalf("condensation %v, want %v again: %v", again.ID, made.ID, err)
	}
	if text, err := one.Summary(t.Context(), again.ID); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("another thread's condensation has %q, %v", text, err)
	}
	if c, err := one.Prepared(t.Context(), "t"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("another thread has %+v, %v", c, err)
	}
}

// TestTextsStoredBeforeAreRead switches records off for a store that has some.
func TestTextsStoredBeforeAreRead(t *testing.T) {
	store, now := bareStore(t), time.Now()
	began(t, store, now)
	c, err := store.Condense(t.Context(), "t", summarised("earlier words", now))
	must(t, err)
	if text, err := session.WithoutRecords(store).Summary(t.Context(), c.ID); err != nil || text != "earlier words" {
		t.Errorf("%q, %v", text, err)
	}
}
