package limit

import "time"

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
