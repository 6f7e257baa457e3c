package engine

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Budget is a budget and who spends it: a tenant or, if Session is not empty, one of its sessions.
type Budget struct {
	limit.Budget
	Tenant  string
	Session session.SessionID
}

// Units of budgets. An account in dollars counts in millionths: MicrosPerUSD.
const (
	UnitTokens   = "tokens"
	UnitUSD      = "usd"
	MicrosPerUSD = 1e6
)

// Account returns the budget's account in a unit for the period that contains now. Periods of different lengths that end together have accounts
// of their own.
func (b *Budget) Account(unit string, now time.Time) session.Account {
	name := "tenant/" + unit
	if b.Session != "" {
		name = "session/" + string(b.Session) + "/" + unit
	}
	begin, end := b.Period.Bounds(now)
	return session.Account{Tenant: b.Tenant, Name: fmt.Sprintf("%s/%d", name, begin.Unix()), Until: end}
}

// Spending is what is spent of a budget in one unit, and what is held for requests under way.
type Spending struct {
	Unit               string
	Limit, Spent, Held float64
	Begin, End         time.Time // of the period
}

// Spending returns what is spent of a budget, in each of its units, in the period that contains now. A budget that is not set has none.
func (e *Engine) Spending(ctx context.Context, b Budget, now time.Time) (all []Spending, err error) {
	if !b.Set() {
		return nil, nil
	}
	begin, end := b.Period.Bounds(now)
	var charges []session.Charge
	add := func(unit string, limit float64) {
		if limit > 0 {
			all = append(all, Spending{Unit: unit, Limit: limit, Begin: begin, End: end})
			charges = append(charges, session.Charge{Account: b.Account(unit, now), Limit: math.MaxInt64})
		}
	}
	add(UnitTokens, float64(b.Tokens))
	add(UnitUSD, b.USD)
	got, err := e.Reserve(ctx, "", charges)
	if err != nil {
		return nil, err
	}
	for i, balance := range got.Balances {
		perUnit := 1.0
		if all[i].Unit == UnitUSD {
			perUnit = MicrosPerUSD
		}
		all[i].Spent, all[i].Held = float64(balance.Spent)/perUnit, float64(balance.Held)/perUnit
	}
	return all, nil
}
