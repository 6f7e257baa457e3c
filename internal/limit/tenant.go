// Package limit defines limits: sizes in bytes, rates, and the limits of a tenant. The configuration, the proxy and the admin API share them.
package limit

import (
	"cmp"
	"fmt"
)

// Tenant holds the limits of a tenant; 0 means no limit. Each replica applies them separately, except budgets and, if Shared is set, the
// limits per minute, which replicas share through the store.
type Tenant struct {
	Concurrent int   `yaml:"concurrent" json:"concurrent"` // concurrent requests, including answers still being sent
	Body       Bytes `yaml:"max_body" json:"max_body"`     // of a request
	Requests   int   `yaml:"requests_per_minute" json:"requests_per_minute"`
	Tokens     int   `yaml:"tokens_per_minute" json:"tokens_per_minute"` // forwarded and answered

	Summaries     int `yaml:"summaries_per_minute" json:"summaries_per_minute"`           // summariser calls
	SummaryTokens int `yaml:"summary_tokens_per_minute" json:"summary_tokens_per_minute"` // of summariser calls

	Budget        Budget `yaml:"budget" json:"budget"`
	SessionBudget Budget `yaml:"session_budget" json:"session_budget"` // of each session

	Shared bool `yaml:"shared" json:"shared"` // replicas share the limits per minute
}

// Budget limits what may be spent in each period, in dollars, tokens or both. The zero Budget is no limit.
type Budget struct {
	USD    float64 `yaml:"usd"`
	Tokens int     `yaml:"tokens"` // of prompts and answers
	Period Period  `yaml:"period"`
	Then   string  `yaml:"then"` // Refuse or Condense; empty: Refuse
}

// Values of Budget.Then.
const (
	Refuse   = "refuse"   // refuse requests once it is spent
	Condense = "condense" // condense harder once little is left, and then refuse
)

// MarshalJSON implements json.Marshaler: the period is text, and a budget that is set has no empty Then.
func (b Budget) MarshalJSON() ([]byte, error) {
	if b.Set() {
		b.Then = cmp.Or(b.Then, Refuse)
	}
	return fmt.Appendf(nil, `{"usd":%g,"tokens":%d,"period":%q,"then":%q}`, b.USD, b.Tokens, b.Period.String(), b.Then), nil
}

// Set reports whether b limits anything.
func (b Budget) Set() bool { return b.USD > 0 || b.Tokens > 0 }
