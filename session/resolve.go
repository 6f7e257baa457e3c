package session

import "slices"

// Newest is how many of a history's newest chain hashes are looked up first. A history usually grows by two messages.
const Newest = 16

// probes is how many positions each later round trip looks up at most.
const probes = 64

// search finds the longest indexed prefix of a history in few round trips. It looks up the newest positions first, then milestones at
// doubling distances, then the gap between a known and an unknown position. It assumes that every milestone in a known prefix is known too.
// Therefore it may miss a thread that has only its newest positions indexed (sharedIndexed). It does no I/O: next returns the positions to
// look up, and seen takes the result.
type search struct {
	n     int   // length of the history
	known Place // end of the longest prefix found so far
	low   int   // its position, 0 if none
	high  int   // lowest position found to be unknown, initially n+1
	wide  bool  // do the first two steps in one round trip, because the newest positions are probably unknown
}

func newSearch(n int) *search { return &search{n: n, high: n + 1} }

// next returns the positions to look up, highest first; none when the search is over.
func (s *search) next() []int {
	before := max(0, s.n-Newest) // position before the newest ones
	switch {
	case s.low+1 >= s.high:
		return nil
	case s.high <= s.n && s.low == 0: // the newest positions are unknown
		return gallop(s.high)
	case s.high <= s.n:
		return spread(s.low, s.high)
	case s.wide && before > 0:
		return append(spread(before, s.high), gallop(before+1)...)
	}
	return spread(before, s.high)
}

// seen takes the result of a look-up: the places found for the positions that next returned.
func (s *search) seen(positions []int, places []Place) {
	for i, p := range positions {
		if places[i].Known() && places[i].Pos == p {
			if p > s.low {
				s.low, s.known = p, places[i]
			}
			return
		}
		s.high = min(s.high, p)
	}
}

// gallop returns milestones below high at doubling distances, and position 1.
func gallop(high int) []int {
	var out []int
	for at, step := milestoneBefore(high), milestone; at > 1; at, step = at-step, 2*step {
		out = append(out, at)
	}
	return append(out, 1)
}

// spread returns the positions between low and high, highest first: all or, if there are too many, milestones, evenly spaced.
func spread(low, high int) []int {
	gap := high - low - 1
	out := make([]int, min(gap, probes))
	for i := range out {
		out[i] = high - 1 - i*gap/len(out)
		if gap > probes {
			out[i] = milestoneBefore(out[i] + 1)
		}
	}
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(p int) bool { return p <= low })
}

// Of a thread's positions only some are indexed: the newest, by which it is usually found, its first own two, since many histories have only
// the first in common, and milestones. A history that leaves the thread between them is compared with the log (walk).
const (
	milestone   = 16 // at most Newest, so that there is one among the newest positions of a history
	newestIndex = 4
	firstIndex  = 2
)

// milestoneBefore returns the last milestone below a position, 0 if there is none.
func milestoneBefore(p int) int { return (p - 1) / milestone * milestone }

// staysIndexed reports whether a thread's position p is indexed as long as the thread exists.
func (t *Thread) staysIndexed(p int) bool { return p%milestone == 0 || p <= t.ForkAt+firstIndex }

// Match says how a history relates to the thread that it was found in.
type Match uint8

const (
	MatchNone   Match = iota // no prefix of the history is known
	MatchEnd                 // the history begins with the whole thread
	MatchInside              // the history differs from the thread before the thread's end
	MatchReplay              // the thread contains the whole history
)

// classify compares a history, known up to position p, with the thread found there. It returns the match and how many of the history's
// positions the thread has logged.
func classify(h *History, p int, t *Thread) (Match, int) {
	switch {
	case h.Covers(t.Len, t.Head):
		return MatchEnd, t.Len // the index may be behind the log or ahead of it; missing entries are written again
	case p == h.Len():
		return MatchReplay, p
	case p < t.Len:
		return MatchInside, p
	}
	return MatchNone, 0
}

// onlyOpening reports whether a history consists only of opening messages: the agent's greeting, if any, and the user messages after it.
// Two conversations may begin with the same ones.
func onlyOpening(h *History) bool {
	userSpoke := false
	for p := 1; p <= h.Len(); p++ {
		switch h.Message(p).Kind {
		case User:
			userSpoke = true
		case Agent:
			if userSpoke {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// onlyGreeting reports whether the first n messages are the agent's greeting and nothing else. It is false if n is 0.
func onlyGreeting(h *History, n int) bool {
	for p := 1; p <= n; p++ {
		if h.Message(p).Kind != Agent {
			return false
		}
	}
	return n > 0
}
