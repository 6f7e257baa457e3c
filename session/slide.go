package session

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// minAnswers is how many answers in a row prove that two histories are of the same run, if no call among them has a unique id.
const minAnswers = 3

// carry returns the condensations of t that apply to a history which shares t's positions 1 to shared: those that carryOver returns or, if
// the client now sends only its newest messages, all of them without what they did to messages that the client left out. It reads t's log,
// unless carryOver returns all of them. If the reading fails or takes more than half of the time left in ctx, carry returns what carryOver
// returned.
func (r *Registry) carry(ctx context.Context, h *History, t *Thread, all []Condensation, shared int) []Condensation {
	whole := r.carryOver(ctx, h, all, shared)
	if len(whole) == len(all) {
		return whole
	}
	s := newSlide(h, all, shared)
	if s.last == 0 || !s.readLog(ctx, r.store, t) || !s.find() || !r.cutByClient(ctx, h, s.cutResults()) {
		return whole
	}
	rest := s.rest()
	if shown := summaryOf(s.all); shown != nil && !slices.ContainsFunc(rest, func(c Condensation) bool { return c.ID == shown.ID }) {
		return whole // without the condensation that has the summary
	}
	return rest
}

// slide compares a thread's history with a later one whose client left out the oldest messages (a sliding window), except perhaps for
// some at the beginning that both share. The client left out only messages that the thread's condensations touch, and none after them.
type slide struct {
	history *History
	all     []Condensation // made for the thread's history, each building on the one before
	shared  int            // number of positions at the beginning that both histories share

	touched     []bool // by position of the thread after the shared ones: the condensations hide it or, if they hide none, trim it
	hides       bool   // some condensation hides messages
	first, last int    // first and last touched position, 0 if there are none

	events  map[int]Event  // of the thread's log, by position, without payloads
	results map[int]Result // the tool results that the condensations have recorded, by position

	begin   int  // the first touched position that the client still sends
	shift   int  // added to a position of the thread, gives that in the history; not positive
	changed bool // the view changes before the end of what it still hides
}

func newSlide(h *History, all []Condensation, shared int) *slide {
	s := &slide{history: h, shared: shared, events: map[int]Event{}, results: map[int]Result{}}
	for i := range all {
		if n := len(s.all); n == 0 && all[i].Base == (CondensationID{}) || n > 0 && all[i].Base == s.all[n-1].ID {
			s.all = append(s.all, all[i]) // if two build on the same one, the first applies
			s.hides = s.hides || len(all[i].Forgotten) > 0
			for _, r := range all[i].Hidden.Results {
				s.results[r.Pos] = r
			}
			_, last := all[i].extent()
			s.touched = append(s.touched, make([]bool, max(last+1-len(s.touched), 0))...)
		}
	}
	for _, c := range s.all {
		for _, r := range c.Forgotten {
			for p := max(r.From, shared+1); p < r.To; p++ {
				s.touched[p] = true
			}
		}
		for _, t := range c.Trims {
			s.touched[t.Pos] = s.touched[t.Pos] || !s.hides && t.Pos > shared
		}
	}
	for p, touched := range s.touched {
		if touched {
			s.first, s.last = cmp.Or(s.first, p), p
		}
	}
	return s
}

// readLog reads the thread's log from its end to the first touched message that the client may still send. It returns false if the log
// cannot be read.
func (s *slide) readLog(ctx context.Context, store Store, t *Thread) bool {
	if deadline, ok := ctx.Deadline(); ok {
		limited, cancel := context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
		ctx = limited
	}
	low := t.Len + 1
	for page, err := range newestPages(ctx, store, t) {
		if err != nil {
			return false
		}
		for _, e := range page {
			if e.Pos > 0 {
				s.events[e.Pos], low = e, min(low, e.Pos)
			}
		}
		if low > s.last {
			continue
		}
		s.shift = 0
		for s.last+s.shift > s.shared && !s.same(s.last) && !s.sameCall(s.last) {
			s.shift--
		}
		if s.last+s.shift <= s.shared || low <= max(s.first, s.shared+1-s.shift) && s.events[low].Kind != Observation {
			break // the client left out the last touched message too, or everything that it may still send was read
		}
	}
	return true
}

// find sets begin and shift. It returns false if the history is not the end of the thread's, as a sliding window leaves it.
func (s *slide) find() bool {
	for s.shift = 0; s.last+s.shift > s.shared; s.shift-- {
		s.begin = s.last + 1
		answers, proven := s.nextAnswers()
		next := answers > 0
		for p := s.last; p >= s.first && (!s.touched[p] || s.same(p) || s.sameCall(p)); p-- {
			if !s.touched[p] {
				continue
			}
			s.begin = p
			if s.events[p].Kind.ByModel() {
				answers, proven = answers+1, proven || s.hasUniqueCall(p)
			}
		}
		// Only the first touched messages may be missing, and enough answers must match that the rest cannot match by chance.
		if next && s.begin <= s.last && s.begin+s.shift <= s.first && (proven || answers >= minAnswers) {
			return true
		}
	}
	return false
}

// nextAnswers counts the answers after the touched messages that the history has, up to the first one that it does not have. It also
// reports whether hasUniqueCall holds for one of them.
func (s *slide) nextAnswers() (n int, proven bool) {
	for p := s.last + 1; ; p++ {
		switch e, read := s.events[p]; {
		case !read || e.Kind.ByModel() && !s.same(p):
			return n, proven
		case e.Kind.ByModel():
			n, proven = n+1, proven || s.hasUniqueCall(p)
		}
	}
}

// same reports whether the history still has the thread's message at position p, unchanged.
func (s *slide) same(p int) bool {
	e, read := s.events[p]
	at := p + s.shift
	return read && at > s.shared && at <= s.history.Len() && s.history.Message(at).Digest == e.Digest
}

// sameCall reports whether the message at position p is a hidden tool result that the history has in a shortened form: a smaller result of
// the same call.
func (s *slide) sameCall(p int) bool {
	at := p + s.shift
	if !s.hides || s.events[p].Kind != Observation || at <= s.shared || at > s.history.Len() {
		return false
	}
	result := s.history.Message(at)
	was, known := s.results[p]
	for s.events[p].Kind == Observation {
		p--
	}
	call := p + s.shift
	if p <= s.shared {
		call = p
	} else if !s.same(p) {
		return false
	}
	return (!known || was.shortened(result)) && result.Kind == Observation && slices.Contains(s.history.Message(call).Calls, result.Result)
}

// cutResults returns the positions, in the history, of the tool results that differ from the thread's.
func (s *slide) cutResults() (positions []int) {
	for p := s.begin; p <= s.last; p++ {
		if s.touched[p] && !s.same(p) {
			positions = append(positions, p+s.shift)
		}
	}
	return positions
}

// hasUniqueCall reports whether the message at position p makes a call with a unique id whose result the history has unchanged. The history
// must have the message.
func (s *slide) hasUniqueCall(p int) bool {
	return slices.ContainsFunc(s.history.Message(p+s.shift).Calls, func(id string) bool {
		at := s.history.resultOf(p+s.shift, id)
		return at > 0 && s.same(at-s.shift) && s.history.identifies(id)
	})
}

// rest returns the condensations, with positions of the history, without what they did to messages that the client left out.
func (s *slide) rest() (out []Condensation) {
	base := CondensationID{}
	s.changed = s.begin+s.shift > s.shared+1
	for p := s.shared + 1; p < s.begin; p++ {
		s.changed = s.changed || !s.hides || !s.touched[p] // the view showed a message that is now gone
	}
	for _, c := range s.all {
		if c.Prefix > s.shared {
			c = s.cut(c)
		}
		if c.Prefix > 0 { // otherwise it touches nothing that the client still sends
			c.Base, base = base, c.ID
			out = append(out, c)
		}
	}
	if s.changed && len(out) > 0 {
		unbind(s.history, out, s.shared+1)
	}
	placeSummaries(out)
	return out
}

// cut returns c with positions of the history, without what it did to messages that the client left out, or a zero condensation if c would
// be outside of the history. Copies whose source is gone are shown in full.
func (s *slide) cut(c Condensation) Condensation {
	ranges, trims := c.Forgotten, c.Trims
	c.Forgotten, c.Trims = nil, nil
	for _, r := range ranges {
		shared := Range{From: r.From, To: min(r.To, s.shared+1)}
		r.From = max(r.From, s.begin)
		for _, left := range [...]Range{shared, r} {
			if left.From < left.To {
				c.Forgotten = append(c.Forgotten, left)
			}
		}
	}
	isSent := func(p int) bool { return p <= s.shared || s.same(p) }
	for _, t := range trims {
		copies := t.Copies
		t.Copies = slices.DeleteFunc(slices.Clone(copies), func(copied Copy) bool { return !isSent(copied.Source) })
		if isSent(t.Pos) {
			c.Trims = append(c.Trims, t)
		}
		renumbered := t.Named && t.Pos > s.shared && s.shift < 0 && isSent(t.Pos)
		s.changed = s.changed || renumbered || len(t.Copies) < len(copies) || !isSent(t.Pos) && t.Pos >= s.begin
	}
	if c.Added > 0 && !isSent(c.Added) {
		c.Added, s.changed = 0, true
	}
	c = c.shifted(s.history, s.shared, s.shift)
	c.Hidden = hiddenBy(s.history, &c)
	return c
}
