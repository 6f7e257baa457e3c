package session

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
)

// carryOver returns those of a thread's condensations that apply to a history which shares the thread's positions 1 to shared. A
// condensation that covers only shared positions applies. Another one applies if the history has the messages that it touches, although
// something before them changed; they must be unchanged, except for tool results that the client has shortened since.
func (r *Registry) carryOver(ctx context.Context, h *History, all []Condensation, shared int) []Condensation {
	var out []Condensation
	shifts := []int{0, 1, -1, 2, -2, 3, -3} // how many messages may have been added or removed before them; the first match fixes it
	for _, c := range all {
		if c.Base != (CondensationID{}) && !slices.ContainsFunc(out, func(b Condensation) bool { return b.ID == c.Base }) {
			continue
		}
		if c.Prefix <= shared {
			out = append(out, c)
			continue
		}
		for _, shift := range shifts {
			s := c.shifted(h, 0, shift)
			if cut, ok := s.matches(h); ok && r.cutByClient(ctx, h, cut) {
				out, shifts = append(out, s), []int{shift}
				break
			}
		}
	}
	if len(shifts) == 1 && (shifts[0] != 0 || !slices.ContainsFunc(out, func(c Condensation) bool { return c.Hides(shared + 1) })) {
		unbind(h, out, shared+1)
	}
	placeSummaries(out)
	return out
}

// placeSummaries moves each summary before the first message that its condensation, or one that it builds on, hides. The condensations
// must be in order.
func placeSummaries(carried []Condensation) {
	first := math.MaxInt
	for i := range carried {
		if c := &carried[i]; len(c.Forgotten) > 0 {
			first = min(first, c.Forgotten[0].From)
			c.Offset = first
		}
	}
}

// unbind records in the newest condensation that the view changes at the given position. Sealed reasoning after that position is bound to
// the old content, so the view must leave it out.
func unbind(h *History, carried []Condensation, position int) {
	newest := &carried[len(carried)-1]
	newest.Stripped = max(newest.Stripped, h.LastSealed())
	if newest.Changed == 0 || newest.Changed > position {
		newest.Changed = position
	}
}

// shifted returns c with shift added to all its positions greater than after. If the result would be outside of the history, it returns
// the zero condensation, which matches nothing.
func (c *Condensation) shifted(h *History, after, shift int) Condensation {
	s := *c
	move := func(p *int) {
		if *p > after {
			*p += shift
		}
	}
	s.Forgotten, s.Trims, s.Hidden.Results = slices.Clone(c.Forgotten), slices.Clone(c.Trims), slices.Clone(c.Hidden.Results)
	for i := range s.Hidden.Results {
		move(&s.Hidden.Results[i].Pos)
	}
	for i := range s.Forgotten {
		if r := &s.Forgotten[i]; r.From > after {
			r.From, r.To = r.From+shift, r.To+shift
		}
	}
	for i := range s.Trims {
		move(&s.Trims[i].Pos)
		s.Trims[i].Copies = slices.Clone(s.Trims[i].Copies)
		for j := range s.Trims[i].Copies {
			move(&s.Trims[i].Copies[j].Source)
		}
	}
	s.Prefix, s.Stripped = max(c.Prefix+shift, after), max(c.Stripped+shift, 0)
	if c.Changed > 0 {
		s.Changed = max(c.Changed+shift, 1)
	}
	if c.Added > 0 {
		move(&s.Added)
	}
	if first, _ := s.extent(); first < 1 || s.Prefix > h.Len() {
		return Condensation{}
	}
	s.Hash = h.Chain[s.Prefix]
	return s
}

// matches reports whether the messages that c hides, trims or adds to are those that it was made for. Tool results may be shorter than
// they were, because clients shorten old results; cut returns the positions of these. If some results differ, c matches only if it
// has recorded all results that it touches (see maxResults).
func (c *Condensation) matches(h *History) (cut []int, ok bool) {
	if !c.Hidden.Span.IsZero() && c.Hidden.Span == spanOf(h, c) {
		return nil, true
	}
	if c.Hidden.Run.IsZero() || c.countResults(h) > len(c.Hidden.Results) || c.Hidden.Run != runOf(h, c) {
		return nil, false
	}
	for _, r := range c.Hidden.Results {
		m := h.Message(r.Pos)
		if r.same(m) {
			continue
		}
		if !r.shortened(m) {
			return nil, false
		}
		cut = append(cut, r.Pos)
	}
	return cut, true
}

// countResults returns how many tool results c touches.
func (c *Condensation) countResults(h *History) (n int) {
	first, last := c.extent()
	for p := max(first, 1); p <= last; p++ {
		if c.touches(p) && h.Message(p).Kind == Observation {
			n++
		}
	}
	return n
}

// Result identifies the tool result at a position. It distinguishes a result that the client has shortened since from the result of
// another run.
type Result struct {
	Pos  int
	Sum  uint64 // the first 21 bits of its digest, which take 3 bytes in a record
	Size int    // bytes of its message, 0 if unknown
}

// maxResults is how many of the results that it touches, the newest, a condensation records. It is small because every request reads them.
const maxResults = 16

func resultAt(h *History, p int) Result {
	m := h.Message(p)
	return Result{Pos: p, Sum: checksum(m.Digest), Size: len(m.Raw)}
}

// resultOfEvent is resultAt for a logged result. The size is 0 if another entry stores the content.
func resultOfEvent(e *Event) Result {
	return Result{Pos: e.Pos, Sum: checksum(e.Digest), Size: len(e.Payload)}
}

func checksum(digest Hash) uint64 { return uint64(binary.BigEndian.Uint32(digest[:]) >> 11) }

func (r *Result) same(m *Message) bool { return r.Sum == checksum(m.Digest) }

// shortened reports whether a message may be a shortened form of the result.
func (r *Result) shortened(m *Message) bool { return m.Kind == Observation && len(m.Raw) < r.Size }

// extent returns the first and the last position that c hides, trims or adds to, 0 if there are none.
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

// touches reports whether c hides, trims or adds to the message at a position.
func (c *Condensation) touches(position int) bool {
	return c.Hides(position) || c.Added == position || slices.ContainsFunc(c.Trims, func(t Trim) bool { return t.Pos == position })
}

// hiddenBy returns the hashes and results by which a later history is recognised to contain the messages that c touches.
func hiddenBy(h *History, c *Condensation) Hidden {
	hidden := Hidden{Span: spanOf(h, c), Run: runOf(h, c)}
	if hidden.Run.IsZero() {
		return hidden
	}
	first, last := c.extent()
	for p := last; p >= first && len(hidden.Results) < maxResults; p-- {
		if c.touches(p) && h.Message(p).Kind == Observation {
			hidden.Results = append(hidden.Results, resultAt(h, p))
		}
	}
	slices.Reverse(hidden.Results)
	return hidden
}

// spanOf returns the hash of the messages that c touches. It depends on the history's scope, but not on the position of the messages.
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

// runOf returns a hash like spanOf that does not change when the client shortens old tool results: it identifies results by the ids of
// their calls. To prove that it is the same run, the hash includes every answer up to the first call with a unique id after the last
// touched message. As long as there is no such call, runOf returns zero. A condensation that hides nothing needs no such proof, since its
// messages are shown, but it identifies a result by its call only if that has a unique id. Because servers may use the same id in several
// runs, even one that looks unique, the results are compared as well (Hidden.Results).
func runOf(h *History, c *Condensation) Hash {
	first, last := c.extent()
	hides := len(c.Forgotten) > 0
	sum := fingerprint(h, 'r')
	for p := first; p > 0 && p <= h.Len(); p++ {
		m := h.Message(p)
		touched := c.touches(p)
		if touched && m.Kind == Observation && (hides || h.identifies(m.Result)) {
			sum = appendIdentity(sum, p-first, []byte(m.Result))
		} else if touched || m.Kind.ByModel() {
			sum = appendIdentity(sum, p-first, m.Digest[:])
		}
		if p >= last && !hides || p > last && h.callsUnique(m) {
			return sha256.Sum256(sum)
		}
	}
	return Hash{}
}

// fingerprint returns the beginning of the input of a hash over messages. appendIdentity adds a message, with its distance from the first.
func fingerprint(h *History, kind byte) []byte { return append(slices.Clone(h.Chain[0][:]), kind) }

func appendIdentity(b []byte, distance int, identity []byte) []byte {
	b = binary.AppendUvarint(b, uint64(distance)) //nolint:gosec // never negative
	return append(binary.AppendUvarint(b, uint64(len(identity))), identity...)
}
