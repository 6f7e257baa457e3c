// Package limit holds what may be taken of a process: sizes, and the limits of a tenant. The configuration, the proxy and
// the admin API share them.
package limit

import "time"

// Tenant bounds what one tenant may take; 0 is no bound. It holds for each replica by itself, but for what is taken a minute where that
// is shared, and for budgets, which replicas share through the store.
type Tenant struct {
	Concurrent int   `yaml:"concurrent" json:"concurrent"` // requests under way, answers still being sent included
	Body       Bytes `yaml:"max_body" json:"max_body"`     // of one request
	Requests   int   `yaml:"requests_per_minute" json:"requests_per_minute"`
	Tokens     int   `yaml:"tokens_per_minute" json:"tokens_per_minute"` // forwarded and answered

	Summaries     int `yaml:"summaries_per_minute" json:"summaries_per_minute"`           // calls of a summariser
	SummaryTokens int `yaml:"summary_tokens_per_minute" json:"summary_tokens_per_minute"` // of those calls

	Budget        Budget `yaml:"budget" json:"budget"`
	SessionBudget Budget `yaml:"session_budget" json:"session_budget"` // of each session

	Repeats Repeats `yaml:"repeated_calls" json:"repeated_calls"`

	Shared bool `yaml:"shared" json:"shared"` // what is taken a minute is taken of all replicas together
}

// Budget is what may be spent in each period, in dollars, in tokens, or both. The zero Budget is none.
type Budget struct {
	USD    float64       `yaml:"usd" json:"usd"`
	Tokens int           `yaml:"tokens" json:"tokens"` // of prompts and answers
	Period time.Duration `yaml:"period" json:"period"` // counted from 1970, in UTC: 24h begins at midnight
	Then   string        `yaml:"then" json:"then"`     // Refuse or Condense; empty: Refuse
}

// The values of Budget.Then.
const (
	Refuse   = "refuse"   // what comes when it is spent
	Condense = "condense" // harder once little is left, and then refuse
)

// Set reports whether it is a budget.
func (b Budget) Set() bool { return b.USD > 0 || b.Tokens > 0 }

// Until is when the period ends that a time is in.
func (b Budget) Until(now time.Time) time.Time {
	into := time.Duration(now.UnixNano() % int64(b.Period))
	return now.Add(b.Period - into).UTC()
}

// Repeats says what is done about a model that makes the same call with the same result again and again. The zero value: nothing.
type Repeats struct {
	After int    `yaml:"after" json:"after"` // so many times; 0: DefaultRepeats
	Then  string `yaml:"then" json:"then"`   // Report or Tell; empty: nothing
}

// The values of Repeats.Then.
const (
	Report = "report" // in metrics and the log
	Tell   = "tell"   // the model, too
)

// Bounds of Repeats.After, and what it is where it is 0.
const (
	MinRepeats     = 2
	DefaultRepeats = 5
	MaxRepeats     = 20 // calls that are looked back at
)
