package engine

import (
	"cmp"
	"context"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Reserve is the store's. It waits for it no longer than a turn does.
func (e *Engine) Reserve(ctx context.Context, id string, charges []session.Charge) (out session.Reserved, err error) {
	err = e.ledger(ctx, func(ctx context.Context, l session.Ledger) (err error) {
		out, err = l.Reserve(ctx, id, charges)
		return err
	})
	return out, err
}

// Settle is the store's, likewise.
func (e *Engine) Settle(ctx context.Context, id string, charges []session.Charge) error {
	return e.ledger(ctx, func(ctx context.Context, l session.Ledger) error { return l.Settle(ctx, id, charges) })
}

func (e *Engine) ledger(ctx context.Context, do func(context.Context, session.Ledger) error) error {
	ctx, cancel := context.WithTimeout(ctx, e.o.Limits.Store)
	defer cancel()
	_, store, _, err := e.o.Sessions.Registry(ctx)
	if err != nil {
		return fmt.Errorf("open registry: %w", err)
	}
	return do(ctx, store)
}

// LimitTo has the history condensed above so many tokens, unless its session is one that others are compared with.
func (t *Turn) LimitTo(tokens int) {
	if t.entry != nil && t.entry.Seat.Arm == session.HeldOut {
		return
	}
	if t.in.Limit == 0 || tokens < t.in.Limit {
		t.in.Limit = tokens
	}
}

// MostOutput is how many tokens the answer may have: what the client allows, but no more than the model gives, or has room for where that
// is not known. 0: not known.
func (t *Turn) MostOutput() int {
	most := cmp.Or(t.model.MaxOutput, t.model.Window)
	switch asked := t.in.Split.MaxOutput; {
	case asked <= 0:
		return t.model.MaxOutput
	case most > 0:
		return min(asked, most)
	default:
		return asked
	}
}
