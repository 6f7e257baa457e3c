package frontier

import (
	"math"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// headMessages is the number of messages that stay at the beginning.
const headMessages = 2

// Least returns what a run costs at least if it is condensed as deep as by price, at the steps that are best in hindsight: by dynamic
// programming over those steps. What must stay is reckoned to be the beginning and what is new.
func (r *Run) Least(p Prices) float64 {
	sent, answers, head := make([]int, len(r.steps)), 0.0, r.fixed // sent[k]: tokens of step k without a condensation
	size, at, beginning := r.fixed, 0, 0
	for k, s := range r.steps {
		for ; at < s.at; at++ {
			size += r.tokens[at]
			if r.messages[at].Kind != session.System {
				beginning++
			}
			if beginning <= headMessages {
				head = size
			}
		}
		sent[k] = size
		answers += p.Output * float64(s.answer)
	}
	after := make([]float64, len(sent)) // what the steps after a condensation cost at least
	rest := func(from, context int) float64 {
		soFar, best := 0.0, math.Inf(1)
		for k := from; k < len(sent); k++ {
			added := sent[k]
			if k > 0 {
				added -= sent[k-1]
			}
			if kept := condensed(sent[k]-r.fixed, head, added); kept < context+added {
				best = min(best, soFar+p.of(bill{total: kept, cached: head})+after[k])
			}
			soFar += p.of(bill{total: context + added, cached: context})
			context += added
		}
		return min(best, soFar)
	}
	for k := len(after) - 1; k >= 0; k-- {
		added := sent[k]
		if k > 0 {
			added -= sent[k-1]
		}
		after[k] = rest(k+1, condensed(sent[k]-r.fixed, head, added))
	}
	return answers + rest(0, 0)
}

// condensed returns the tokens of a request after a condensation.
func condensed(history, head, added int) int { return head + added + condense.Memory(history) }
