package replay

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
)

// Report is the usage and the cost of a run, or of several runs together.
type Report struct {
	Run      string `json:"run"`
	Steps    int    `json:"steps"`    // model calls
	Messages int    `json:"messages"` // in the longest history; of several runs, the sum

	Without Bill `json:"without"` // the agent's requests as it sent them
	With    Bill `json:"with"`    // the agent's requests as forwarded
	Own     Bill `json:"own"`     // the proxy's own calls, such as those for summaries

	Account account.Comparison `json:"-"` // what the proxy's own accounts say, if Options ask for it

	Short bool `json:"short"` // no limit could concern it, so it was not played

	// Estimated is the size of system and tools of which the run has no text, taken from the recorded usage, in tokens.
	Estimated int `json:"estimated_tokens"`

	// Recorded is the input that the log records for requests, and Counted what the replay counts of the same requests, in tokens.
	Recorded int `json:"recorded_tokens"`
	Counted  int `json:"counted_tokens"`

	// Named counts what actions name that stood in an earlier message, and Missing what of that the model was not shown.
	Named   int `json:"named"`
	Missing int `json:"missing"`

	Condensations int            `json:"condensations"`
	CondensedAt   int            `json:"condensed_at"` // tokens of the first request that was condensed; 0: none was. Of several runs, the median
	Failed        map[string]int `json:"failed"`       // condensations that failed, by cause, as in X-Dewpoint-Condense-Failed
	TooLong       int            `json:"too_long"`     // requests that the agent sent above the model's context window

	Records []Condensation `json:"records,omitempty"` // one for each condensation; of several runs, none
}

// Condensation is one condensation of a run. Counts of tokens are the proxy's, of the whole request.
type Condensation struct {
	Step         int    `json:"step"`
	Reason       string `json:"reason"`
	Events       int    `json:"events"` // messages hidden
	TokensBefore int    `json:"tokens_before"`
	TokensAfter  int    `json:"tokens_after"`
	Replacement  string `json:"replacement"`

	// Record is the text in place of the hidden messages, as forwarded after the step's condensations. Only the last condensation of a step
	// has it. It is empty if there is none.
	Record string `json:"record"`
}

// Bill sums up calls of models, in tokens and in money.
type Bill struct {
	Models []string `json:"models"` // the models that were called, sorted
	Calls  int      `json:"calls"`
	Input  int      `json:"input_tokens"`
	Cached int      `json:"cached_tokens"` // part of Input
	Output int      `json:"output_tokens"`
	Cost   Money    `json:"usd"`
}

// add adds a call of a model.
func (b *Bill) add(name string, u model.Usage, price model.Price) {
	b.sum(Bill{
		Models: []string{name}, Calls: 1, Input: u.Input, Cached: u.Cached, Output: u.Output,
		Cost: Money{USD: price.Call(u), Unknown: !price.Known()},
	})
}

func (b *Bill) sum(o Bill) {
	b.Models = slices.Concat(b.Models, o.Models)
	slices.Sort(b.Models)
	b.Models = slices.Compact(b.Models)
	b.Calls += o.Calls
	b.Input += o.Input
	b.Cached += o.Cached
	b.Output += o.Output
	b.Cost = b.Cost.plus(o.Cost)
}

// Money is an amount of money. It is unknown if the price of one of the models is unknown.
type Money struct {
	USD     float64
	Unknown bool
}

// MarshalJSON returns the amount in US dollars, or null if it is unknown.
func (m Money) MarshalJSON() ([]byte, error) {
	if m.Unknown {
		return []byte("null"), nil
	}
	return json.Marshal(rounded(m.USD))
}

// rounded rounds to nine decimals. It removes the differences that result from adding amounts in different orders.
func rounded(n float64) float64 { return math.Round(n*1e9) / 1e9 }

func (m Money) plus(o Money) Money { return Money{m.USD + o.USD, m.Unknown || o.Unknown} }

// add adds the condensations of a step.
func (r *Report) add(all []Condensation) {
	if r.CondensedAt == 0 && len(all) > 0 {
		r.CondensedAt = all[0].TokensBefore
	}
	r.Condensations += len(all)
	r.Records = append(r.Records, all...)
}

// costWith returns what the run costs with the proxy, its own calls included.
func (r *Report) costWith() Money { return r.With.Cost.plus(r.Own.Cost) }

// Saved returns the amount that the proxy saved, less the cost of its own calls. It may be negative.
func (r *Report) Saved() Money {
	with := r.costWith()
	with.USD = -with.USD
	return r.Without.Cost.plus(with)
}

// SavedShare returns the share of the cost that was saved, 0 if it is not known.
func (r *Report) SavedShare() float64 {
	saved := r.Saved()
	if saved.Unknown || r.Without.Cost.USD == 0 {
		return 0
	}
	return saved.USD / r.Without.Cost.USD
}

// Total returns the sum of reports.
func Total(reports []Report) Report {
	total := newReport("total")
	var begun []int
	for _, r := range reports {
		total.Steps += r.Steps
		total.Messages += r.Messages
		total.Without.sum(r.Without)
		total.With.sum(r.With)
		total.Own.sum(r.Own)
		total.Account.Bill += r.Account.Bill
		total.Account.Without += r.Account.Without
		total.Account.Saved += r.Account.Saved
		total.Condensations += r.Condensations
		total.Estimated += r.Estimated
		total.Recorded += r.Recorded
		total.Counted += r.Counted
		total.Named += r.Named
		total.Missing += r.Missing
		if r.CondensedAt > 0 {
			begun = append(begun, r.CondensedAt)
		}
		total.TooLong += r.TooLong
		for cause, n := range r.Failed {
			total.Failed[cause] += n
		}
	}
	if len(begun) > 0 {
		slices.Sort(begun)
		total.CondensedAt = begun[len(begun)/2]
	}
	return total
}

func newReport(name string) Report {
	return Report{Run: name, Failed: map[string]int{}, Without: Bill{Models: []string{}}, With: Bill{Models: []string{}}, Own: Bill{Models: []string{}}}
}
