package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/overflow"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// hanging is a store with one method that does not answer; "*": all methods.
type hanging struct {
	session.Store
	method string
}

// enter blocks until the caller gives up.
func (h *hanging) enter(ctx context.Context, method string) error {
	if h.method != method && h.method != "*" {
		return nil
	}
	<-ctx.Done()
	return fmt.Errorf("%s: %w", method, errors.Join(session.ErrUnavailable, ctx.Err()))
}

func (h *hanging) Find(ctx context.Context, hashes []session.Hash, hint session.ThreadID, traces ...session.Hash) (session.Found, error) {
	if err := h.enter(ctx, "Find"); err != nil {
		return session.Found{}, err
	}
	return h.Store.Find(ctx, hashes, hint, traces...)
}

func (h *hanging) Thread(ctx context.Context, id session.ThreadID) (session.Thread, error) {
	if err := h.enter(ctx, "Thread"); err != nil {
		return session.Thread{}, err
	}
	return h.Store.Thread(ctx, id)
}

func (h *hanging) Append(ctx context.Context, b session.Batch) error {
	if err := h.enter(ctx, "Append"); err != nil {
		return err
	}
	return h.Store.Append(ctx, b)
}

func (h *hanging) Condense(ctx context.Context, id session.ThreadID, c session.Condensation) (session.Condensation, error) {
	if err := h.enter(ctx, "Condense"); err != nil {
		return c, err
	}
	return h.Store.Condense(ctx, id, c)
}

func (h *hanging) Prepare(ctx context.Context, id session.ThreadID, c session.Condensation) error {
	if err := h.enter(ctx, "Prepare"); err != nil {
		return err
	}
	return h.Store.Prepare(ctx, id, c)
}

func (h *hanging) Prepared(ctx context.Context, id session.ThreadID) (session.Condensation, error) {
	if err := h.enter(ctx, "Prepared"); err != nil {
		return session.Condensation{}, err
	}
	return h.Store.Prepared(ctx, id)
}

func (h *hanging) Summary(ctx context.Context, id session.CondensationID) (string, error) {
	if err := h.enter(ctx, "Summary"); err != nil {
		return "", err
	}
	return h.Store.Summary(ctx, id)
}

func (h *hanging) Lock(ctx context.Context, id session.ThreadID, ttl time.Duration) (session.Lease, error) {
	if err := h.enter(ctx, "Lock"); err != nil {
		return session.Lease{}, err
	}
	return h.Store.Lock(ctx, id, ttl)
}

// slow is a summariser that takes that long; 0: forever.
type slow struct{ takes time.Duration }

func (s slow) Summarise(ctx context.Context, _ condense.Request) (condense.Reply, error) {
	over := time.NewTimer(s.takes)
	defer over.Stop()
	if s.takes == 0 {
		over.Stop()
	}
	select {
	case <-over.C:
		return condense.Reply{Text: "DISCUSSED: the sea.", Finish: "stop"}, nil
	case <-ctx.Done():
		return condense.Reply{}, ctx.Err()
	}
}

// TestNoRequestWaitsLonger condenses requests for each reason while the summariser is slow, one method of the store hangs, or another request
// holds the thread's lock. None waits longer than the deadline plus the time limit of the store for a read, and none longer than the deadline
// while the store answers, even if upstream then refuses the request for its length.
func TestNoRequestWaitsLonger(t *testing.T) {
	quick.Skip(t)
	methods := []string{"", "*", "Find", "Thread", "Append", "Condense", "Prepare", "Prepared", "Summary", "Lock", "locked"}
	for _, need := range []string{"soft", "hard", "now", "overflow", "soft, overflow", "now, overflow"} {
		for _, takes := range []time.Duration{0, 3 * time.Second, time.Minute} {
			for _, never := range []bool{false, true} {
				for _, method := range methods {
					t.Run(fmt.Sprintf("%s %s never=%t %s", need, takes, never, method), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { waits(t, need, slow{takes}, never, method) })
					})
				}
			}
		}
	}
}

func waits(t *testing.T, need string, summariser slow, never bool, method string) {
	const deadline, read = 10 * time.Second, time.Second
	settings := condense.Settings{MaxSize: 20, KeepFirst: 1, BackgroundAt: 0.8}
	if need == "hard" || need == "overflow" {
		settings.MaxSize = 0
	}
	r := newRig(t, condense.NewLLM(condense.LLMSettings{Settings: settings, Summariser: summariser, Model: "cheap"}))
	store := &hanging{Store: r.store}
	r.store, r.tenant.Never, r.tenant.Ahead, r.tenant.Deadline = store, never, never, deadline
	r.clock = time.Time{}
	r.start()
	first := r.begin(says(9), engine.WishNone)
	r.logged(first)
	if store.method = method; method == "locked" {
		lease, err := r.store.Lock(t.Context(), first.Place().Thread.ID, time.Hour)
		must(t, err)
		defer lease.Release()
	}
	if need == "hard" {
		r.window = 1500
	}
	wish := engine.WishNone
	if strings.HasPrefix(need, "now") {
		wish = engine.WishNow
	}
	begun := time.Now()
	asked := says(31)
	turn, err := r.tryBegin(asked, wish)
	recognised := time.Since(begun)
	if recognised > 2*read {
		t.Errorf("recognised after %s", recognised)
	}
	if err == nil {
		turn.Condense(t.Context())
		if strings.HasSuffix(need, "overflow") {
			turn.overflow(t.Context(), overflow.Overflow{Limit: 1500})
			turn.settle(t.Context(), true)
		}
		most := deadline + read
		switch {
		case method != "":
		case never && !strings.HasPrefix(need, "now"):
			most = 0
		default:
			most = deadline
		}
		if took := time.Since(begun) - recognised; took > most {
			t.Errorf("it waited for %s", took)
		}
	}
	closing, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_ = r.engine.Close(closing) // cancels running condensations
	synctest.Wait()
}
