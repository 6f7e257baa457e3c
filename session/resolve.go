package session

// Newest is how many of a history's newest chain hashes are looked up first: the usual case is a history that has grown
// by two messages.
const Newest = 16

// probes is how many positions one further round trip looks at.
const probes = 64

// search finds the longest known prefix of a history in few round trips: the newest positions, then (or at once) positions
// at doubling distance, then the gap between a known and an unknown one. It relies on a known position's prefixes being
// known too. It is pure: next names the positions to look up, and seen takes what was found.
type search struct {
	n      int   // length of the history
	known  Place // at the longest prefix found so far
	low    int   // its position, 0 if none
	high   int   // lowest position known to be unknown, n+1 at first
	rounds int
	wide   bool // look at positions further back at once: it is not likely that the newest are known
}

func newSearch(n int) *search { return &search{n: n, high: n + 1} }

// next gives the positions to look up, highest first; none when the search is over.
func (s *search) next() []int {
	if s.low+1 >= s.high {
		return nil
	}
	s.rounds++
	switch s.rounds {
	case 1:
		low := max(1, s.n-Newest+1)
		newest := span(low, s.n)
		if !s.wide || low == 1 {
			return newest
		}
		s.rounds++
		return append(newest, gallop(low)...)
	case 2:
		return gallop(s.high)
	default:
		return spread(s.low, s.high)
	}
}

// seen takes the places found at positions.
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
	if s.rounds >= 2 && s.low == 0 {
		s.high = 1 // position 1 was looked at too: nothing is known
	}
}

func span(from, to int) []int {
	out := make([]int, 0, to-from+1)
	for p := to; p >= from; p-- {
		out = append(out, p)
	}
	return out
}

// gallop gives positions below high at doubling distance, and position 1.
func gallop(high int) []int {
	var out []int
	for step := Newest; high-step > 1; step *= 2 {
		out = append(out, high-step)
	}
	return append(out, 1)
}

// spread gives at most probes positions between low and high, evenly.
func spread(low, high int) []int {
	gap := high - low - 1
	if gap <= probes {
		return span(low+1, high-1)
	}
	out := make([]int, probes)
	for i := range out {
		out[i] = high - 1 - i*gap/probes
	}
	return out
}

// Match says how a history relates to the thread that it was found in.
type Match uint8

// The ways to match.
const (
	MatchNone   Match = iota // nothing of it is known
	MatchEnd                 // it begins with the whole thread
	MatchInside              // it leaves the thread before its end
	MatchReplay              // the thread holds all of it
)

// classify compares a history, known up to position p, with the thread found there. It gives the match and the position
// from which messages are new.
func classify(h *History, p int, t *Thread) (Match, int) {
	switch {
	case h.Covers(t.Len, t.Head):
		return MatchEnd, t.Len // the index may be behind the log or ahead of it: what is missing is written again
	case p == h.Len():
		return MatchReplay, p
	case p < t.Len:
		return MatchInside, p
	}
	return MatchNone, 0
}

// begins reports whether the first p messages are only the agent's greeting and users' messages: two conversations may
// well begin alike.
func begins(h *History, p int) bool {
	asked := false
	for i := 1; i <= p; i++ {
		switch h.Message(i).Kind {
		case User:
			asked = true
		case Agent:
			if asked {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// greets reports whether the first p messages are only the agent's greeting.
func greets(h *History, p int) bool {
	for i := 1; i <= p; i++ {
		if h.Message(i).Kind != Agent {
			return false
		}
	}
	return p > 0
}
