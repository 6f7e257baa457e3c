package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

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
		if logged := t.logged.place.Thread.ID; logged != "" {
			id = logged
		}
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
