package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// nano is what dollars are counted in.
const nano = 1e9

// bill sums up what calls of summarisers cost.
type bill struct {
	mu  sync.Mutex
	sum session.Cost
}

// of has b told of the calls that are made for the work of ctx, next to what is told of them already. A call that failed is not charged.
func (b *bill) of(ctx context.Context) context.Context {
	return limit.WithBill(ctx, func(at context.Context, c limit.Call) {
		cost := session.Cost{Calls: 1}
		if !c.Failed {
			cost.Used = session.Usage{Input: c.Input, Cached: c.Cached, Output: c.Output}
			if cost.Nano = int64(math.Round(c.USD * nano)); !c.Known {
				cost.Nano, cost.Unpriced = 0, head(c.Model)
			}
		}
		b.mu.Lock()
		b.sum.Add(cost)
		b.mu.Unlock()
		limit.Bill(ctx, c)
	})
}

func (b *bill) total() session.Cost {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sum
}

// Save adds to the savings of the turn's thread, once that is logged.
func (t *Turn) Save(ctx context.Context, more session.Savings) error {
	id := t.place.Thread.ID
	if t.logged != nil {
		t.awaitLog()
		id = cmp.Or(t.logged.place.Thread.ID, id)
	}
	return t.save(ctx, id, more)
}

func (t *Turn) save(ctx context.Context, id session.ThreadID, more session.Savings) error {
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	if err := t.store.Save(ctx, id, more); err != nil && !errors.Is(err, session.ErrNotFound) { // deleted meanwhile
		return fmt.Errorf("save: %w", err)
	}
	return nil
}

// takeSeat draws the session's seat in its tenant's holdout, if that has one.
func (t *Turn) takeSeat(secret session.Secret) {
	share := t.in.Tenant.Holdout
	if share <= 0 {
		return
	}
	t.entry = &session.Entry{
		Experiment: secret.Experiment(t.in.Tenant.Name, share), Seat: secret.Seat(t.place.Thread.Session, share), Begun: t.place.Thread.Created,
	}
	if t.entry.Seat.Arm == session.HeldOut {
		tenant := *t.in.Tenant
		tenant.Condenser, tenant.Hidden.Request = condense.HeldOut{Condenser: tenant.Condenser}, false
		t.in.Tenant = &tenant
	}
}

// Compared reports whether the turn's tenant has a holdout, for which Compare is called once.
func (t *Turn) Compared() bool { return t.entry != nil }

// Compare adds an answered request to what its tenant's holdout compares: what it cost, in USD, if that is known.
func (t *Turn) Compare(ctx context.Context, usd float64, known bool) error {
	sums := session.Sums{}
	if t.place.Begins {
		if again, _ := t.engine.memory.begun.ContainsOrAdd(t.place.Thread.Session, struct{}{}); !again {
			sums.Sessions = 1
		}
	}
	if t.purpose == session.PurposeMain {
		sums.Steps = 1
	}
	return t.addTo(ctx, sums, usd, known)
}

func (t *Turn) addTo(ctx context.Context, sums session.Sums, usd float64, known bool) error {
	if sums.Nano = int64(math.Round(usd * nano)); !known {
		sums.Nano, sums.Unpriced = 0, 1
	}
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	c := *t.entry
	c.Sums = sums
	if err := t.store.Enter(ctx, c); err != nil {
		return fmt.Errorf("enter: %w", err)
	}
	return nil
}

// billed has the calls that a condensation makes told of, and added to what the session cost. What is lost of that is no harm.
func (t *Turn) billed(ctx context.Context) context.Context {
	compared, spent, id := t.entry != nil, t.in.Spent, t.place.Thread.Session
	if !compared && spent == nil {
		return ctx
	}
	return limit.WithBill(ctx, func(ctx context.Context, c limit.Call) {
		if compared && !c.Failed {
			_ = t.addTo(ctx, session.Sums{}, c.USD, c.Known)
		}
		if spent != nil {
			spent(id, c)
		}
	})
}

// Experiment is what the sessions of a tenant came to where that share of them is held out.
func (e *Engine) Experiment(ctx context.Context, tenant string, share float64) (found session.Experiment, err error) {
	err = e.stored(ctx, func(ctx context.Context, s session.Store, secret session.Secret) (err error) {
		if found, err = s.Experiment(ctx, secret.Experiment(tenant, share)); err != nil {
			return fmt.Errorf("read experiment: %w", err)
		}
		return nil
	})
	return found, err
}
