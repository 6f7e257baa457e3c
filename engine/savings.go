package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// nano converts dollars to nanodollars, in which costs are stored.
const nano = 1e9

// withCost returns a context and a function that sums up the cost of the summariser calls made with it, which are also passed to any bill
// that ctx already has. A failed call counts, but costs nothing unless its server may charge it.
func withCost(ctx context.Context) (context.Context, func() session.Cost) {
	var mu sync.Mutex
	var sum session.Cost
	billed := limit.WithBill(ctx, func(_ context.Context, c limit.Call) {
		cost := session.Cost{Calls: 1}
		if c.Charged() {
			cost.Used = session.Usage{Input: c.Input, Cached: c.Cached, Output: c.Output}
			if c.Known {
				cost.Nano = int64(math.Round(c.USD * nano))
			} else {
				cost.Unpriced = clip(c.Model)
			}
		}
		mu.Lock()
		sum.Add(cost)
		mu.Unlock()
		limit.Bill(ctx, c)
	})
	return billed, func() session.Cost {
		mu.Lock()
		defer mu.Unlock()
		return sum
	}
}

// Save adds to the savings of the turn's thread, after waiting for its log.
func (f *Form) Save(ctx context.Context, more session.Savings) error {
	id := f.place.Thread.ID
	if f.logged != nil {
		f.awaitLog()
		id = cmp.Or(f.logged.place.Thread.ID, id)
	}
	return f.turn.save(ctx, id, more)
}

// save adds to the savings of a thread. It is no error if the thread was deleted meanwhile.
func (t *Turn) save(ctx context.Context, id session.ThreadID, more session.Savings) error {
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	if err := t.store.Save(ctx, id, more); err != nil && !errors.Is(err, session.ErrNotFound) {
		return fmt.Errorf("add savings: %w", err)
	}
	return nil
}

// assign assigns the session to an arm of its tenant's holdout, if there is one.
func (t *Turn) assign(secret session.Secret) {
	h := t.in.Tenant.Holdout
	if h.Share <= 0 {
		return
	}
	t.entry = &session.Entry{
		Experiment: secret.Experiment(t.in.Tenant.Name, h), Assignment: secret.Assign(t.place.Thread.Session, h.Share),
	}
	if t.place.Begins {
		t.engine.memory.begun.ContainsOrAdd(t.place.Thread.Session, new(atomic.Bool))
	}
	switch arm := t.in.Tenant.Arm; {
	case t.entry.Assignment.Arm != session.HeldOut:
	case arm != nil:
		t.in.Tenant = t.in.Tenant.with(arm)
	default:
		tenant := *t.in.Tenant
		tenant.Condenser, tenant.Hidden.Request = condense.HeldOut{Condenser: tenant.Condenser}, false
		t.in.Tenant = &tenant
	}
}

// uncondensed reports whether the session is held out without a condenser of its own.
func (t *Turn) uncondensed() bool {
	return t.entry != nil && t.entry.Assignment.Arm == session.HeldOut && t.in.Tenant.Arm == nil
}

// Compared reports whether the tenant has a holdout. If so, call Compare once for each answered request.
func (t *Turn) Compared() bool { return t.entry != nil }

// Arm returns which arm of the tenant's holdout the session is in; empty: the tenant has none.
func (t *Turn) Arm() string {
	switch {
	case t.entry == nil:
		return ""
	case t.entry.Assignment.Arm == session.HeldOut:
		return ArmHeldOut
	}
	return ArmCondensed
}

// The arms of a holdout.
const (
	ArmCondensed = "condensed"
	ArmHeldOut   = "held_out"
)

// Compare adds an answered request and its cost in USD to the tenant's holdout; known reports whether the cost is known.
func (f *Form) Compare(ctx context.Context, usd float64, known bool) error {
	var sums session.Sums
	counted, begun := f.turn.engine.memory.begun.Get(f.place.Thread.Session) // by this request, or by one that upstream did not answer
	if begun && counted.CompareAndSwap(false, true) {
		sums.Sessions = 1
	}
	if f.turn.purpose == session.PurposeMain {
		sums.Steps = 1
	}
	return f.enter(ctx, sums, usd, known)
}

// CompareFailure adds a request that upstream refused or failed to the tenant's holdout.
func (f *Form) CompareFailure(ctx context.Context) error {
	if f.turn.purpose != session.PurposeMain {
		return nil
	}
	return f.enter(ctx, session.Sums{Errors: 1}, 0, true)
}

// enter adds sums and a cost to the session's entry in the holdout.
func (f *Form) enter(ctx context.Context, sums session.Sums, usd float64, known bool) error {
	if known {
		sums.Nano = int64(math.Round(usd * nano))
	} else {
		sums.Unpriced = 1
	}
	ctx, cancel := context.WithTimeout(ctx, f.turn.engine.o.Limits.Store)
	defer cancel()
	entry := *f.turn.entry
	entry.Sums, entry.Begun = sums, f.sessionCreated(ctx)
	if err := f.turn.store.Enter(ctx, entry); err != nil {
		return fmt.Errorf("add to holdout: %w", err)
	}
	return nil
}

// sessionCreated returns when the session began, or this thread if that cannot be read.
func (f *Form) sessionCreated(ctx context.Context) time.Time {
	id, created := f.place.Thread.Session, f.turn.engine.memory.created
	if at, known := created.Get(id); known {
		return at
	}
	s, err := f.turn.store.Session(ctx, id)
	if err != nil {
		return f.place.Thread.Created
	}
	created.Add(id, s.Created)
	return s.Created
}

// billed returns a context whose model calls are passed to Input.Spent and added to the session's holdout entry, and for which budgets are
// asked before each call. Losing a figure does no harm.
func (f *Form) billed(ctx context.Context) context.Context {
	compared, spent, id := f.turn.entry != nil, f.turn.in.Spent, f.place.Thread.Session
	if f.turn.in.Budgets != nil {
		ctx = limit.WithBudget(ctx, func(ctx context.Context, model string) bool {
			return f.turn.engine.overspent(ctx, f.turn.in.Budgets(id, model))
		})
	}
	if !compared && spent == nil {
		return ctx
	}
	return limit.WithBill(ctx, func(ctx context.Context, c limit.Call) {
		if compared && c.Charged() {
			_ = f.enter(ctx, session.Sums{}, c.USD, c.Known)
		}
		if spent != nil {
			spent(id, c)
		}
	})
}

// overspent reports whether one of the budgets is spent, without what requests under way may still need. If the store does not answer, none is.
func (e *Engine) overspent(ctx context.Context, budgets []session.Charge) bool {
	if len(budgets) == 0 {
		return false
	}
	got, err := e.Reserve(ctx, "", budgets)
	if err != nil {
		return false
	}
	for i, b := range got.Balances {
		if b.Spent >= budgets[i].Limit {
			return true
		}
	}
	return false
}

// Experiment returns the sums of a tenant's holdout.
func (e *Engine) Experiment(ctx context.Context, tenant string, h session.Holdout) (found session.Experiment, err error) {
	err = e.withStore(ctx, func(ctx context.Context, s session.Store, secret session.Secret) (err error) {
		if found, err = s.Experiment(ctx, secret.Experiment(tenant, h)); err != nil {
			return fmt.Errorf("read experiment: %w", err)
		}
		return nil
	})
	return found, err
}
