package retention

import (
	"math/rand/v2"
	"slices"
)

// selection is a choice of whole units within a budget.
type selection struct {
	*moment
	kept   []bool
	tokens int
}

// choose begins with what must stay; without a head, that is the system messages, the newest user message and the last
// unit only.
func (m *moment) choose(head bool) *selection {
	s := &selection{moment: m, kept: make([]bool, m.at)}
	for i := range m.at {
		if m.protected[i] || head && m.head[i] {
			s.kept[i] = true
			s.tokens += m.run.tokens[i]
		}
	}
	return s
}

// cost is the tokens that a unit would add.
func (s *selection) cost(unit int) int {
	total := 0
	for i := s.units[unit].From; i < s.units[unit].To; i++ {
		if !s.kept[i] {
			total += s.run.tokens[i]
		}
	}
	return total
}

// take adds a unit if it fits.
func (s *selection) take(unit, budget int) bool {
	cost := s.cost(unit)
	if s.tokens+cost > budget {
		return false
	}
	s.tokens += cost
	for i := s.units[unit].From; i < s.units[unit].To; i++ {
		s.kept[i] = true
	}
	return true
}

func (s *selection) shown() shown { return shown{whole: s.kept, tokens: s.tokens} }

// tailOnly keeps the newest units.
func tailOnly(m *moment, budget int) shown { return newest(m.choose(false), budget) }

// headTail keeps the head and the newest units.
func headTail(m *moment, budget int) shown { return newest(m.choose(true), budget) }

// newest keeps the newest units that fit. Where one is too large, it goes on to older ones that are not: budgets are used to the full.
func newest(s *selection, budget int) shown {
	for u := len(s.units) - 1; u >= 0; u-- {
		s.take(u, budget)
	}
	return s.shown()
}

// random keeps the head and units by chance, the same at every call.
func random(m *moment, budget int) shown {
	s := m.choose(true)
	for _, u := range rand.New(rand.NewPCG(uint64(m.at), uint64(m.total))).Perm(len(s.units)) {
		s.take(u, budget)
	}
	return s.shown()
}

// oracle knows what the action is about to use: it keeps the head and, one after the other, the unit that names the most
// of what is still missing, for its tokens or at all, whichever gets further. No choice of whole units without knowledge
// of the future does much better.
func oracle(m *moment, budget int) shown {
	dense := m.greedy(budget, func(missing, cost int) float64 { return float64(missing) / float64(cost) })
	large := m.greedy(budget, func(missing, _ int) float64 { return float64(missing) })
	if m.score(large, budget).Kept > m.score(dense, budget).Kept {
		return large
	}
	return dense
}

// greedy takes the unit of the greatest worth as long as any is of use and fits; the newest fill what room is left.
func (m *moment) greedy(budget int, worth func(missing, cost int) float64) shown {
	s := m.choose(true)
	for {
		best, most := -1, 0.0
		missing := s.missing()
		for u := range s.units {
			cost := s.cost(u)
			if cost == 0 || s.tokens+cost > budget {
				continue
			}
			if w := worth(missing[u], cost); w > most {
				best, most = u, w
			}
		}
		if best < 0 {
			return newest(s, budget)
		}
		s.take(best, budget)
	}
}

// missing counts for each unit the references used that it names and that nothing kept names.
func (s *selection) missing() []int {
	unit := make([]int, s.at)
	for u := range s.units {
		for i := s.units[u].From; i < s.units[u].To; i++ {
			unit[i] = u
		}
	}
	out := make([]int, len(s.units))
	for _, u := range s.used {
		if slices.ContainsFunc(u.where, func(i int) bool { return s.kept[i] }) {
			continue
		}
		last := -1
		for _, i := range u.where {
			if unit[i] != last {
				out[unit[i]]++
			}
			last = unit[i]
		}
	}
	return out
}
