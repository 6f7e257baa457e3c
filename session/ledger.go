package session

import (
	"context"
	"time"
)

// Ledger keeps what was spent of budgets. A Store implements it.
type Ledger interface {
	// Reserve charges accounts, all or none, and holds room in them, each until it is settled or HoldFor is over. None is charged if one is
	// full, which is when what was spent of it and what is held reach its limit. Balances are those before. With an empty id it only tells them.
	// A call with an id that holds something changes nothing.
	Reserve(ctx context.Context, id string, charges []Charge) (Reserved, error)
	// Settle ends what was held under an id, and adds each charge's amount, which may be negative. Where nothing is held any more, nothing changes.
	Settle(ctx context.Context, id string, charges []Charge) error
}

// HoldFor is how long room is held that is never settled, because the replica that reserved it died. Its charge stays.
const HoldFor = time.Hour

// Account is a budget in one unit and one period. All accounts of one call are of one tenant.
type Account struct {
	Tenant string
	Name   string
	Until  time.Time // when its period ends; it is kept for HoldFor longer
}

// Charge is what an account is charged.
type Charge struct {
	Account
	Limit  int64 // at which it is full
	Amount int64
	Room   int64 // to be held on top
}

// Balance is what was spent of an account, and what is held.
type Balance struct{ Spent, Held int64 }

// Reserved is the answer of Reserve.
type Reserved struct {
	Balances []Balance // one for each charge
	Full     bool      // nothing was charged: an account is full
}

// Full reports whether an account with a balance takes no charge.
func (c *Charge) Full(b Balance) bool { return b.Spent+b.Held >= c.Limit }
