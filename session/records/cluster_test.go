package records_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/records"
	"github.com/dewpoint-proxy/dewpoint/session/store"
	"github.com/dewpoint-proxy/dewpoint/session/store/memory"
)

// spread is a store that keeps groups in several places, as a Cluster does.
type spread struct {
	*memory.Store
	before func(*store.Commit) // of each commit
	broken bool                // nothing but the first group is written
}

func (*spread) Late() time.Duration { return time.Nanosecond }

func (s *spread) Commit(ctx context.Context, c store.Commit) (store.Result, error) {
	if s.before != nil {
		s.before(&c)
	}
	if !s.broken {
		return s.Store.Commit(ctx, c)
	}
	c.Parts = c.Parts[:1]
	if _, err := s.Store.Commit(ctx, c); err != nil {
		return store.Result{}, err
	}
	return store.Result{}, session.ErrUnavailable
}

// expire deletes a thread as its TTL does.
func (s *spread) expire(t *testing.T, id session.ThreadID) {
	t.Helper()
	key := store.Key{Kind: 't', Group: string(id), Logs: "ex"}
	_, err := s.Store.Commit(t.Context(), store.Commit{Parts: []store.Part{{Key: key, Clear: true}}})
	must(t, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func beginning(id session.ThreadID, of session.SessionID) session.Batch {
	return session.Batch{Thread: session.Thread{ID: id, Session: of, Len: 1}, Events: []session.Event{{Pos: 1, Kind: session.User}}}
}

// named writes an entry with a name to the journal of a session.
func named(of session.SessionID, number uint64) session.JournalBatch {
	return session.JournalBatch{Writer: "w", Number: number, Entries: []session.JournalEntry{{Session: of, Name: session.Hash{1, 2, 3}, Value: []byte("x")}}}
}

// refused appends to a thread that has expired, after which its session is looked at.
func refused(t *testing.T, s *records.Store, id session.ThreadID, of session.SessionID) {
	t.Helper()
	b := beginning(id, of)
	b.At, b.Thread.Len = 1, 2
	if err := s.Append(t.Context(), b); !errors.Is(err, session.ErrStale) {
		t.Fatalf("got %v, want %v", err, session.ErrStale)
	}
}

// TestASessionStaysWithItsOldestThread: in a Cluster a session's log names each thread twice, so that its newest part is half as long.
func TestASessionStaysWithItsOldestThread(t *testing.T) {
	under := &spread{Store: memory.New()}
	s := records.New(under, records.Options{})
	var others []session.ThreadID
	for i := range 20 {
		others = append(others, session.ThreadID(fmt.Sprint("early", i)))
	}
	for i := range session.MaxThreads {
		others = append(others, session.ThreadID(fmt.Sprint("late", i)))
	}
	for i, id := range others {
		if i == 20 {
			must(t, s.Append(t.Context(), beginning("living", "s")))
		}
		must(t, s.Append(t.Context(), beginning(id, "s")))
	}
	for _, id := range others {
		under.expire(t, id)
	}
	refused(t, s, "late0", "s")
	found, err := under.Read(t.Context(), store.Query{Records: []store.Select{{Key: store.Key{Kind: 's', Group: "s"}}}})
	must(t, err)
	if !found.Records[0].Exists() {
		t.Error("the session of a living thread is gone")
	}
}

// TestNamesGoWithASessionWithoutThreads: no entry leads to a session whose threads have expired and which was deleted therefore.
func TestNamesGoWithASessionWithoutThreads(t *testing.T) {
	under := &spread{Store: memory.New()}
	s := records.New(under, records.Options{})
	must(t, s.Append(t.Context(), beginning("t", "s")))
	must(t, s.WriteJournal(t.Context(), named("s", 1)))
	under.expire(t, "t")
	refused(t, s, "t", "s")
	if id, err := s.FindJournal(t.Context(), session.Hash{1, 2, 3}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("found session %q, %v, want %v", id, err, session.ErrNotFound)
	}
}

// TestAJournalWrittenMeanwhileStays: a session that is about to be deleted because it has no threads stays if its journal grows.
func TestAJournalWrittenMeanwhileStays(t *testing.T) {
	under := &spread{Store: memory.New()}
	s := records.New(under, records.Options{})
	must(t, s.Append(t.Context(), beginning("t", "s")))
	under.expire(t, "t")
	under.before = func(c *store.Commit) {
		if c.Parts[0].Key.Kind == 's' && c.Parts[0].Clear {
			under.before = nil
			must(t, s.WriteJournal(t.Context(), named("s", 1)))
		}
	}
	refused(t, s, "t", "s")
	page, err := s.ReadJournal(t.Context(), "s", 0, 10)
	must(t, err)
	if len(page) != 1 || under.before != nil {
		t.Errorf("%d entries, want the one written meanwhile", len(page))
	}
}

// TestANameOfAnotherSessionStays: a name that another session takes while the first one is deleted leads to that other one.
func TestANameOfAnotherSessionStays(t *testing.T) {
	under := &spread{Store: memory.New()}
	s := records.New(under, records.Options{})
	must(t, s.Append(t.Context(), beginning("t", "s")))
	must(t, s.Append(t.Context(), beginning("u", "other")))
	must(t, s.WriteJournal(t.Context(), named("s", 1)))
	under.before = func(c *store.Commit) {
		if c.Parts[0].Key.Kind == 'n' {
			under.before = nil
			must(t, s.WriteJournal(t.Context(), named("other", 2)))
		}
	}
	must(t, s.Forget(t.Context(), "s"))
	if id, err := s.FindJournal(t.Context(), session.Hash{1, 2, 3}); err != nil || id != "other" {
		t.Errorf("found session %q, %v, want the other one", id, err)
	}
}

// TestARepeatedBatchHasItsNames: if the names of a batch were not written, the batch is completed when it is written again.
func TestARepeatedBatchHasItsNames(t *testing.T) {
	under := &spread{Store: memory.New()}
	s := records.New(under, records.Options{})
	must(t, s.Append(t.Context(), beginning("t", "s")))
	under.broken = true
	if err := s.WriteJournal(t.Context(), named("s", 1)); !errors.Is(err, session.ErrUnavailable) {
		t.Fatalf("got %v, want %v", err, session.ErrUnavailable)
	}
	under.broken = false
	must(t, s.WriteJournal(t.Context(), named("s", 1)))
	if id, err := s.FindJournal(t.Context(), session.Hash{1, 2, 3}); err != nil || id != "s" {
		t.Errorf("found session %q, %v", id, err)
	}
	page, err := s.ReadJournal(t.Context(), "s", 0, 10)
	must(t, err)
	if len(page) != 1 {
		t.Errorf("%d entries, want 1", len(page))
	}
}
