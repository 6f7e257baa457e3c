package session_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// calls returns a call of each method of a store, by name.
func calls(s session.Backend) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Secret":   func(ctx context.Context) error { _, err := s.Secret(ctx, session.Secret("s")); return err },
		"Find":     func(ctx context.Context) error { _, err := s.Find(ctx, []session.Hash{{1}}, "t"); return err },
		"Thread":   func(ctx context.Context) error { _, err := s.Thread(ctx, "t"); return err },
		"Append":   func(ctx context.Context) error { return s.Append(ctx, session.Batch{Thread: session.Thread{ID: "t"}}) },
		"Condense": func(ctx context.Context) error { _, err := s.Condense(ctx, "t", session.Condensation{}); return err },
		"Summary": func(ctx context.Context) error {
			_, err := s.Summary(ctx, session.CondensationID{Thread: "t"})
			return err
		},
		"Events":   func(ctx context.Context) error { _, err := s.Events(ctx, "t", 1, 1); return err },
		"Trace":    func(ctx context.Context) error { _, err := s.Trace(ctx, []session.Hash{{1}}); return err },
		"Prepare":  func(ctx context.Context) error { return s.Prepare(ctx, "t", session.Condensation{}) },
		"Prepared": func(ctx context.Context) error { _, err := s.Prepared(ctx, "t"); return err },
		"Mark": func(ctx context.Context) error {
			return s.Mark(ctx, session.Place{Thread: "t"}, session.Traces{Lasting: []session.Hash{{1}}})
		},
		"Answers":    func(ctx context.Context) error { _, err := s.Answers(ctx, "t"); return err },
		"Enter":      func(ctx context.Context) error { return s.Enter(ctx, session.Entry{Experiment: "a"}) },
		"Experiment": func(ctx context.Context) error { _, err := s.Experiment(ctx, "a"); return err },
		"Save":       func(ctx context.Context) error { return s.Save(ctx, "t", session.Savings{Tokens: 1}) },
		"WriteJournal": func(ctx context.Context) error {
			return s.WriteJournal(ctx, session.JournalBatch{Writer: "w", Number: 1})
		},
		"ReadJournal": func(ctx context.Context) error { _, err := s.ReadJournal(ctx, "s", 0, 1); return err },
		"FindJournal": func(ctx context.Context) error { _, err := s.FindJournal(ctx, session.Hash{1}); return err },
		"Totals":      func(ctx context.Context) error { _, err := s.Totals(ctx, "2026-01-02"); return err },
		"Saved":       func(ctx context.Context) error { _, err := s.Saved(ctx, "t"); return err },
		"Session":     func(ctx context.Context) error { _, err := s.Session(ctx, "s"); return err },
		"Lock":        func(ctx context.Context) error { _, err := s.Lock(ctx, "t", time.Second); return err },
		"Sessions":    func(ctx context.Context) error { _, err := s.Sessions(ctx, session.SessionQuery{Limit: 1}); return err },
		"Forget":      func(ctx context.Context) error { return s.Forget(ctx, "s") },
		"Compact":     func(ctx context.Context) error { return s.Compact(ctx) },
		"Request":     func(ctx context.Context) error { return s.Request(ctx, "t", time.Unix(1, 0)) },
		"Set":         func(ctx context.Context) error { return s.Set(ctx, "a", []byte("x")) },
		"Settings":    func(ctx context.Context) error { _, err := s.Settings(ctx); return err },
		"Ping":        s.Ping,
		"Reserve":     func(ctx context.Context) error { _, err := s.Reserve(ctx, "id", nil); return err },
		"Enqueue":     func(ctx context.Context) error { _, err := s.Enqueue(ctx, session.Notice{Thread: "t"}, 1); return err },
		"Enqueued":    func(ctx context.Context) error { _, _, err := s.Enqueued(ctx, "a", 0, 1); return err },
		"Dequeue":     func(ctx context.Context) error { return s.Dequeue(ctx, session.Notice{Thread: "t"}) },
		"Settle":      func(ctx context.Context) error { return s.Settle(ctx, "id", nil) },
	}
}

// TestGuard: a method that panics returns ErrUnavailable with the place of the panic, and the others keep working.
func TestGuard(t *testing.T) {
	file, err := boltstore.Open(boltstore.Options{Path: t.TempDir() + "/store.db"})
	if err != nil {
		t.Fatal(err)
	}
	panicking := sessiontest.NewPanicking(file)
	s := session.Guard(panicking, nil)
	defer s.Close()
	all := calls(s)
	if methods := reflect.TypeFor[session.Backend]().NumMethod() - 2; len(all) != methods { // all but Close and Encrypts, which knows it
		t.Errorf("%d methods are called of %d", len(all), methods)
	}
	for name, method := range all {
		if err := method(t.Context()); errors.Is(err, session.ErrUnavailable) {
			t.Errorf("%s, well: %v", name, err)
		}
		panicking.Panic(sessiontest.AllMethods)
		err := method(t.Context())
		if !errors.Is(err, session.ErrUnavailable) || !strings.Contains(err.Error(), "panicking.go:") || !strings.Contains(err.Error(), ": store: ") {
			t.Errorf("%s: %v", name, err)
		}
		if n := panicking.Count(); n != 1 {
			t.Errorf("%s panicked %d times", name, n)
		}
		panicking.Panic("")
	}
	panicking.Panic("unlock")
	lease, err := s.Lock(t.Context(), "another", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	lease.Release()
	if panicking.Count() != 1 {
		t.Errorf("unlock panicked %d times", panicking.Count())
	}
}

func TestRecoverGivesTheError(t *testing.T) {
	want := errors.New("as it is")
	if err := session.Recover(func() error { return want }); err != want { //nolint:errorlint // the same
		t.Errorf("got %v", err)
	}
	var none []int
	err := session.Recover(func() error { return fmt.Errorf("%d", none[3]) })
	var panicked *session.PanicError
	if !errors.As(err, &panicked) || !strings.HasPrefix(panicked.At, "guard_test.go:") || !strings.Contains(panicked.Func, "/session_test.TestRecover") {
		t.Errorf("got %v", err)
	}
}
