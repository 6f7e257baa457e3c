package retention

import (
	"context"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// trims gives the trims that a condenser decides on as the results of the run arrive, by position.
func (r *run) trims(length int) []session.Trim {
	var out []session.Trim
	c := condense.ToolOutputTrim{MaxEventLength: length}
	passed := 0 // positions before the last assistant message
	last := 0   // its index
	for at := 1; at <= len(r.messages); at++ {
		if at < len(r.messages) && !r.messages[at].Kind.ByModel() {
			continue
		}
		h := session.NewHistory(session.Hash{}, r.messages[last:at])
		v := session.Project(h, nil)
		m := moment{run: r, at: at}
		if job := c.Condense(m.input(&v)).Job; job != nil {
			if made, err := job.Run(context.Background()); err == nil { // it makes no call
				for _, t := range made.Condensation.Trims {
					t.Pos += passed
					out = append(out, t)
				}
			}
		}
		passed += h.Len()
		last = at
	}
	return out
}

// trimmed adds to a journal those trims of the moment's history that it does not have yet.
func (m *moment) trimmed(j journal, trims []session.Trim) journal {
	c := session.Condensation{Reason: session.ReasonArrival, Condenser: condense.ToolOutputTrim{}.Name()}
	known := 0
	for _, made := range j {
		c.Prefix = max(c.Prefix, made.Prefix)
		known += len(made.Trims)
	}
	for _, t := range trims[min(known, len(trims)):] {
		if t.Pos > m.history.Len() {
			break
		}
		c.Trims = append(c.Trims, t)
		c.Prefix = max(c.Prefix, t.Pos)
	}
	if len(c.Trims) == 0 {
		return j
	}
	c.Hash = m.history.Chain[c.Prefix]
	return j.add(c)
}

// trimmedOnly drives the trimming of tool results alone: to the most characters of which the view fits the budget.
func trimmedOnly(lengths ...int) func(*run) viewer {
	return func(r *run) viewer {
		trims := make([][]session.Trim, len(lengths))
		for i, n := range lengths {
			trims[i] = r.trims(n)
		}
		return func(m *moment, budget int) (shown, error) {
			var s shown
			for _, t := range trims {
				v := m.project(m.trimmed(nil, t))
				if s = m.show(&v); s.tokens <= budget {
					break
				}
			}
			return s, nil
		}
	}
}
