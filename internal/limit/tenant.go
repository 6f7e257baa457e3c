// Package limit holds what may be taken of a process: sizes, and the limits of a tenant. The configuration, the proxy and
// the admin API share them.
package limit

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
