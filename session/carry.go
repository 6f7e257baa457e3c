package session

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// shiftsTried is by how many messages what stands before a hidden span may have grown or shrunk.
const shiftsTried = 3

// carried gives those of a thread's condensations that hold for a history which shares its first messages up to a position: those
// that cover no more than that, and those whose hidden messages stand unchanged in the history although something before them
// changed, or are the same but for tool results that the client cut since.
func carried(h *History, all []Condensation, same int) []Condensation {
	var out []Condensation
	shift, moved := 0, false
	for _, c := range all {
		if !c.Base.zero() && !slices.ContainsFunc(out, func(b Condensation) bool { return b.ID == c.Base }) {
			continue
		}
		if c.Prefix <= same {
			out = append(out, c)
			continue
		}
		if !moved {
			shift = c.shift(h)
		}
		if c = c.moved(h, shift); c.holds(h) {
			out, moved = append(out, c), true
		}
	}
	if moved && !slices.ContainsFunc(out, func(c Condensation) bool { return c.Hides(same + 1) }) {
		newest := &out[len(out)-1]
		newest.Stripped = max(newest.Stripped, lastSealed(h)) // what is shown of it was bound to what has changed
	}
	return out
}

// shift is by how many positions a condensation's hidden messages have moved in a history, 0 if they are not found.
func (c *Condensation) shift(h *History) int {
	for d := range shiftsTried + 1 {
		for _, shift := range [...]int{d, -d} {
			if m := c.moved(h, shift); m.holds(h) {
				return shift
			}
		}
	}
	return 0
}

// moved is the condensation for a history in which what it is about stands so many positions later. It covers nothing if that
// is outside of the history.
func (c *Condensation) moved(h *History, shift int) Condensation {
	m := *c
	m.Forgotten, m.Trims = slices.Clone(c.Forgotten), slices.Clone(c.Trims)
	for i := range m.Forgotten {
		m.Forgotten[i].From += shift
		m.Forgotten[i].To += shift
	}
	for i := range m.Trims {
		m.Trims[i].Pos += shift
		m.Trims[i].Copies = slices.Clone(m.Trims[i].Copies)
		for j := range m.Trims[i].Copies {
			m.Trims[i].Copies[j].Source += shift
		}
	}
	m.Prefix, m.Offset, m.Stripped = c.Prefix+shift, c.Offset+shift, max(c.Stripped+shift, 0)
	if c.Added > 0 {
		m.Added += shift
	}
	if first, _ := m.extent(); first < 1 || m.Prefix > h.Len() {
		return Condensation{}
	}
	m.Hash = h.Chain[m.Prefix]
	return m
}

// holds reports whether the messages that a condensation hides or trims are those that it was made for.
func (c *Condensation) holds(h *History) bool {
	return !c.Hidden.Span.IsZero() && c.Hidden.Span == spanOf(h, c) || !c.Hidden.Run.IsZero() && c.Hidden.Run == runOf(h, c)
}

// extent is the first and the last position that a condensation hides, trims or adds to, 0 if there is none.
func (c *Condensation) extent() (first, last int) {
	if c.Added > 0 {
		return c.Added, c.Added
	}
	if n := len(c.Forgotten); n > 0 {
		first, last = c.Forgotten[0].From, c.Forgotten[n-1].To-1
	}
	if n := len(c.Trims); n > 0 {
		if first == 0 || c.Trims[0].Pos < first {
			first = c.Trims[0].Pos
		}
		last = max(last, c.Trims[n-1].Pos)
	}
	return first, last
}

func (c *Condensation) touches(position int) bool {
	return c.Hides(position) || c.Added > 0 && c.Added == position || slices.ContainsFunc(c.Trims, func(t Trim) bool { return t.Pos == position })
}

// spanOf stands for the messages that a condensation hides or trims, wherever they are in a history of the same scope.
func spanOf(h *History, c *Condensation) Hash {
	first, last := c.extent()
	sum := fingerprint(h, 's')
	for p := first; p > 0 && p <= last; p++ {
		if c.touches(p) {
			sum = appendIdentity(sum, p-first, h.Message(p).Digest[:])
		}
	}
	return sha256.Sum256(sum)
}

// runOf stands for the same messages, but takes tool results by their call alone: a client that cuts old results changes those.
// What proves that it is the same run all the same is every answer up to the first call made after the last of these messages.
// It is zero where there is none yet, or where a call's id is too short to be unique. A message that is trimmed needs no proof:
// it is shown.
func runOf(h *History, c *Condensation) Hash {
	first, last := c.extent()
	sum := fingerprint(h, 'r')
	for p := first; p > 0 && p <= h.Len(); p++ {
		m := h.Message(p)
		switch touched := c.touches(p); {
		case touched && m.Kind == Observation && unique(m.Result):
			sum = appendIdentity(sum, p-first, []byte(m.Result))
		case touched || m.Kind == Agent || m.Kind == Action:
			sum = appendIdentity(sum, p-first, m.Digest[:])
		}
		if p >= last && (len(c.Forgotten) == 0 || p > last && slices.ContainsFunc(m.Calls, unique)) {
			return sha256.Sum256(sum)
		}
	}
	return Hash{}
}

// fingerprint begins what is hashed of messages: each by an identity and its distance from the first.
func fingerprint(h *History, kind byte) []byte { return append(slices.Clone(h.Chain[0][:]), kind) }

func appendIdentity(b []byte, distance int, identity []byte) []byte {
	b = binary.AppendUvarint(b, uint64(distance)) //nolint:gosec // never negative
	return append(binary.AppendUvarint(b, uint64(len(identity))), identity...)
}

// lastSealed is the last position with sealed reasoning, 0 if there is none.
func lastSealed(h *History) int {
	for p := h.Len(); p > 0; p-- {
		if h.Message(p).Sealed {
			return p
		}
	}
	return 0
}
