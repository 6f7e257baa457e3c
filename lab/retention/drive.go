package retention

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// input is what a condenser decides on at a moment.
func (m *moment) input(v *session.View) condense.Input {
	in := condense.Input{
		View: v, Measure: m.run.measure, Count: m.run.count, Model: "agent", Codec: m.run,
	}
	for _, n := range m.run.measure(v.Items) {
		in.Total += n
	}
	return in
}

// journal is the condensations of a run as a log would have them.
type journal []session.Condensation

// add gives the journal with one more, which builds on the last one.
func (j journal) add(c session.Condensation) journal {
	if len(j) > 0 {
		c.Base = j[len(j)-1].ID
	}
	c.ID = session.CondensationID{Thread: "run", Seq: uint64(len(j) + 1)}
	return append(slices.Clip(j), c)
}

// forgot reports whether the condensations from number n on forgot anything.
func (j journal) forgot(n int) bool {
	return slices.ContainsFunc(j[n:], func(c session.Condensation) bool { return len(c.Forgotten) > 0 })
}

// project is the view of a moment under a journal, as it is shown.
func (m *moment) project(j journal) session.View {
	v := session.Project(m.history, j)
	condense.Render(m.run, &v)
	return v
}

// rounds bounds the condensations at one moment.
const rounds = 12

// settle condenses as the proxy does, until nothing is due any more. What a nudge changes of the input is up to the caller; nil
// changes nothing.
func (m *moment) settle(c condense.Condenser, j journal, budget int, nudge func(*condense.Input)) (session.View, journal, error) {
	v := m.project(j)
	for range rounds {
		in := m.input(&v)
		in.Window = 2*budget - fixedTokens(&in) // a condensation goes down to half of the rest; without a summary only where the window forces it
		if nudge != nil {
			nudge(&in)
		}
		decided := c.Condense(in)
		if decided.View != nil {
			v = *decided.View
		}
		if decided.Job == nil {
			break
		}
		made, err := decided.Job.Run(context.Background())
		if err != nil {
			return v, j, fmt.Errorf("condense with %s: %w", c.Name(), err)
		}
		j = j.add(made.Condensation)
		v = m.project(j)
	}
	return v, j, nil
}

// fixedTokens returns the tokens that no condensation removes: those of the system prompt and of what is not messages.
func fixedTokens(in *condense.Input) int {
	tokens := in.Fixed
	for i, n := range in.Measure(in.View.Items) {
		if in.View.Items[i].Kind != session.System {
			break
		}
		tokens += n
	}
	return tokens
}

// fitted drives a condenser that is set in events: at each moment with the most events that fit the budget.
func fitted(build func(events int) condense.Condenser) func(*run) viewer {
	return func(*run) viewer {
		return func(m *moment, budget int) (shown, error) {
			view := func(events int) shown {
				v := session.Project(m.history, nil)
				if decided := build(events).Condense(m.input(&v)); decided.View != nil {
					v = *decided.View
				}
				return m.show(&v)
			}
			over := sort.Search(m.at, func(n int) bool { return view(n+1).tokens > budget })
			return view(max(over, 1)), nil
		}
	}
}

// asked drives a condenser that condenses when told to: as often as it takes to fit the budget.
func asked(c condense.Condenser) func(*run) viewer {
	return func(*run) viewer {
		return func(m *moment, budget int) (shown, error) {
			v, _, err := m.settle(c, nil, budget, func(in *condense.Input) {
				if in.Total > budget {
					in.Need = condense.Need{Reason: session.ReasonRequest, Hard: true}
				}
			})
			return m.show(&v), err
		}
	}
}

// rolling drives a condenser that takes a limit of tokens, on a history in which tool results were trimmed to so many characters as they
// arrived; 0: they were not. It condenses at every moment, and goes on from what it made at the newest moment before from which enough
// has come in for another condensation to be due.
func rolling(trimmed int, build func(limits) condense.Condenser) func(*run) viewer {
	return func(r *run) viewer {
		out := &roller{build: build, limits: newLimits(r)}
		if trimmed > 0 {
			out.trims = r.trims(trimmed)
		}
		return out.view
	}
}

// roller keeps the journal of each moment so far, newest last.
type roller struct {
	build  func(limits) condense.Condenser
	limits limits
	trims  []session.Trim
	logs   []journal
}

func (r *roller) view(m *moment, budget int) (shown, error) {
	r.limits.budget = budget
	c := r.build(r.limits)
	for _, before := range slices.Backward(r.logs) {
		before = m.trimmed(before, r.trims)
		v, after, err := m.settle(c, before, budget, nil)
		if err != nil {
			return shown{}, err
		}
		if after.forgot(len(before)) {
			r.logs = append(r.logs, after)
			return m.show(&v), nil
		}
	}
	return r.afresh(m, c)
}

// afresh condenses the whole history. A condenser goes down to half of its limit, so one that has brought the view below
// its limit by other means, but not to the budget, is told that the limit is exceeded.
func (r *roller) afresh(m *moment, c condense.Condenser) (shown, error) {
	budget := r.limits.budget
	before := m.trimmed(nil, r.trims)
	v, after, err := m.settle(c, before, budget, nil)
	if s := m.show(&v); err == nil && !after.forgot(len(before)) && s.tokens > budget {
		v, after, err = m.settle(c, before, budget, func(in *condense.Input) {
			if in.Total > budget {
				in.Total += in.Window + 1 - s.tokens
			}
		})
	}
	r.logs = append(r.logs, after)
	return m.show(&v), err
}
