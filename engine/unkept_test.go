package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// full is a store whose disk has no room for summaries.
type full struct {
	session.Store
	full bool
}

func (f *full) Condense(ctx context.Context, id session.ThreadID, c session.Condensation) (session.Condensation, error) {
	if f.full {
		return c, session.ErrUnavailable
	}
	return f.Store.Condense(ctx, id, c)
}

func (f *full) Prepare(ctx context.Context, id session.ThreadID, c session.Condensation) error {
	if f.full {
		return session.ErrUnavailable
	}
	return f.Store.Prepare(ctx, id, c)
}

// paid counts its calls.
type paid struct{ calls *int }

func (p paid) Summarise(context.Context, condense.Request) (condense.Reply, error) {
	*p.calls++
	return condense.Reply{Text: "DISCUSSED: the sea.", Finish: "stop"}, nil
}

// TestNoSummaryIsPaidForThatTheStoreLoses: while the store does not keep summaries, few are paid for, whether requests wait for them or they are
// prepared. Excerpts tell when the store keeps condensations again.
func TestNoSummaryIsPaidForThatTheStoreLoses(t *testing.T) {
	for name, ahead := range map[string]bool{"waited for": false, "prepared": true} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			r := newRig(t, condense.NewLLM(condense.LLMSettings{
				Settings: condense.Settings{MaxSize: 20, KeepFirst: 1, BackgroundAt: 0.5}, Summariser: paid{&calls}, Model: "cheap",
			}))
			store := &full{r.store, true}
			r.store, r.tenant.Never, r.tenant.Ahead = store, ahead, ahead
			r.start()
			n := 9
			step := func() *request {
				n += 2
				r.clock = r.clock.Add(5 * time.Second)
				asked := says(n)
				turn := r.begin(asked, engine.WishNone)
				for _, a := range turn.Condense(t.Context()).Attempts {
					if store.full && !errors.Is(a.Err, session.ErrUnavailable) {
						t.Errorf("after %d messages: %+v", n, a)
					}
				}
				r.logged(turn)
				asked.work.Wait()
				return turn
			}
			for range 80 {
				step()
			}
			if want := map[bool]int{false: 2, true: 1}[ahead]; calls != want { // where excerpts are tried at every step, no other try is needed
				t.Errorf("%d summaries were paid for in seven minutes, want %d", calls, want)
			}
			before := calls
			store.full = false
			if made := step().Condensed(); len(made) != 1 || !made[0].Provisional {
				t.Errorf("excerpts do not stand in for what was not paid for: %+v", made)
			}
			for made, end := 0, n+100; made < 2; {
				made += len(step().Condensed())
				if n > end {
					t.Fatal("the store has room again, and too little is condensed")
				}
			}
			if calls < before+2 {
				t.Errorf("%d summaries after the store had room again", calls-before)
			}
		})
	}
}
