package proxy

import (
	"bytes"
	"crypto/sha256"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// replyPriming is what every request costs beside its messages, in tokens.
const replyPriming = 3

// counts is what a request measures, before calibration.
type counts struct {
	tally  session.Tally
	fixed  int          // tokens of tools and priming
	before session.Size // the history as the client sent it
}

// know looks up what was learnt of the request's model, and how its tokens are counted. They are counted when they are asked
// for, which for most requests is beside the call upstream.
func (s *Server) know(t *turn) {
	t.counter = s.o.Tokens.Counter(t.split.Model)
	t.model.Window = s.learnt.window(t.tenant.Name, t.split.Model, t.model.Window, s.o.Now())
	place := t.place
	t.counted = sync.OnceValue(func() *counts { return s.count(t, &place) })
}

// count tallies the history: what the log knows in total, and each message after that.
func (s *Server) count(t *turn, place *session.Resolution) *counts {
	c := &counts{tally: s.beginTally(t, place), fixed: s.fixed(t)}
	s.countAhead(t, c.tally.From)
	for p := c.tally.From + 1; p <= t.history.Len(); p++ {
		c.tally.Cum = append(c.tally.Cum, c.tally.Total(p-1)+s.tokens(t, t.history.Message(p)))
	}
	c.tally.System = s.systemTokens(t)
	c.before = session.Size{Events: len(t.split.Messages), Tokens: c.fixed + c.tally.System + c.tally.Total(t.history.Len())}
	return c
}

// Counting is shared out from so many bytes of messages on, among so many processors at most.
const (
	muchToCount = 64 << 10
	counters    = 4
)

// countAhead counts the messages after a position with all hands, if they are many: a history that is seen for the first
// time.
func (s *Server) countAhead(t *turn, from int) {
	size := 0
	for p := from + 1; p <= t.history.Len(); p++ {
		size += len(t.history.Message(p).Raw)
	}
	hands := min(runtime.GOMAXPROCS(0), counters, size/muchToCount+1, t.history.Len()-from)
	if hands < 2 {
		return
	}
	var next atomic.Int64
	next.Store(int64(from))
	count := func() {
		for p := next.Add(1); p <= int64(t.history.Len()); p = next.Add(1) {
			s.tokens(t, t.history.Message(int(p)))
		}
	}
	var others sync.WaitGroup
	for range hands - 1 {
		others.Go(func() {
			defer func() { _ = recover() }() // what was not counted is counted by the caller, and panics there
			count()
		})
	}
	count()
	others.Wait()
}

func (s *Server) beginTally(t *turn, place *session.Resolution) session.Tally {
	from := place.CountedFrom(t.counter.Encoding())
	tally := session.Tally{Encoding: t.counter.Encoding(), From: from, Cum: make([]int, 1, t.history.Len()-from+1)}
	tally.Count = func(p int) int { return s.tokens(t, t.history.Message(p)) }
	if from > 0 {
		tally.Cum[0] = place.Known.Tokens
	}
	return tally
}

func (s *Server) systemTokens(t *turn) (n int) {
	for i := range t.split.Messages {
		if m := &t.split.Messages[i]; m.Kind == session.System {
			n += s.tokens(t, m)
		}
	}
	return n
}

// fixed counts tools and priming. The same tools come with every request.
func (s *Server) fixed(t *turn) int {
	if len(t.split.Tools) == 0 {
		return replyPriming
	}
	key := s.counts.key(t.counter.Encoding(), t.split.Tools)
	return replyPriming + s.counts.of(key, func() int { return t.counter.Tools(t.split.Tools) })
}

// atMost is how many tokens the history has at most, without counting what is new: a token is a byte at least, but for
// those of images.
func (s *Server) atMost(t *turn) int {
	from, n := t.place.CountedFrom(t.counter.Encoding()), s.fixed(t)+s.systemTokens(t)
	if from > 0 {
		n += t.place.Known.Tokens
	}
	for p := from + 1; p <= t.history.Len(); p++ {
		m := t.history.Message(p)
		if known, ok := s.counts.get(s.counts.message(t.counter.Encoding(), m)); ok {
			n += known
			continue
		}
		if bytes.Contains(m.Raw, []byte(imagePart)) {
			n += s.tokens(t, m)
			continue
		}
		n += len(m.Raw)
	}
	return n
}

// imagePart is what a part has that costs more tokens than it has bytes. Whoever spells it with escapes is condensed by the
// overflow that follows.
const imagePart = `"image_url"`

// strangers is how many unknown models are named in the log, each once.
const strangers = 100

// strangeModel reports a model whose window and encoding are a guess.
func (s *Server) strangeModel(name string) {
	s.strange.Lock()
	defer s.strange.Unlock()
	name = head(name)
	if s.strange.names[name] || len(s.strange.names) == strangers {
		return
	}
	s.strange.names[name] = true
	s.o.Log.Warn("unknown model: its window and encoding are a guess; configure it under models", zap.String("model", name))
}

// head bounds what a client can put into the log, and into memory: it is a copy.
func head(s string) string { return strings.Clone(s[:min(len(s), 64)]) }

// tokens counts one message.
func (s *Server) tokens(t *turn, m *session.Message) int {
	return s.counts.of(s.counts.message(t.counter.Encoding(), m), func() int {
		c, err := t.dialect.Read(m.Raw)
		if err != nil {
			return len(m.Raw)/3 + 1 // a conservative guess, never nothing
		}
		return t.counter.Message(c)
	})
}

// size measures the view that is forwarded, before calibration.
func (s *Server) size(t *turn) session.Size {
	return s.sizeOf(t, t.counted().before.Tokens)
}

// sizeOf measures the view of a history that has so many tokens.
func (s *Server) sizeOf(t *turn, tokens int) session.Size {
	size := session.Size{Events: len(t.view.Items), Tokens: tokens}
	if t.view.Identity() {
		return size
	}
	if t.shaped {
		return session.Size{Events: len(t.view.Items), Tokens: t.counted().fixed + sum(s.itemTokens(t, t.view.Items))}
	}
	for _, c := range t.applied {
		size.Tokens -= c.ForgottenTokens
	}
	if c := t.view.Summary(); c != nil {
		size.Tokens += c.SummaryTokens
	}
	return size
}

// measured gives a condensation with token counts as the log keeps them: before calibration, which changes with time.
func (s *Server) measured(t *turn, c session.Condensation) session.Condensation {
	gone := make(map[int]bool)
	for _, r := range c.Forgotten {
		for p := r.From; p < r.To; p++ {
			gone[p] = true
		}
	}
	c.ForgottenTokens, c.Request = 0, head(t.split.Model)
	for i, n := range s.itemTokens(t, t.view.Items) {
		item := t.view.Items[i]
		if item.Index < 0 {
			continue
		}
		p := t.history.Pos(item.Index)
		if gone[p] {
			c.ForgottenTokens += n
			continue
		}
		for j := range c.Trims {
			if c.Trims[j].Pos == p {
				item.Trim = &c.Trims[j]
			}
		}
		item.Strip = p <= c.Stripped && p > 0 && t.split.Messages[item.Index].Sealed
		if was := t.view.Items[i]; item.Trim != was.Trim || item.Strip && !was.Strip {
			t.render(&item)
			c.ForgottenTokens += n - s.itemTokens(t, []session.Item{item})[0]
		}
	}
	if c.Summary != "" {
		c.SummaryTokens = t.counter.Message(session.Content{Role: "user", Text: c.Summary})
	}
	return c
}

// itemTokens counts items; those that a condenser rewrote as they are now.
func (s *Server) itemTokens(t *turn, items []session.Item) []int {
	out := make([]int, len(items))
	for i, item := range items {
		switch {
		case item.Index < 0:
			out[i] = t.counter.Message(session.Content{Role: "user", Text: item.Summary})
		case sameBytes(item.Raw, t.split.Messages[item.Index].Raw):
			out[i] = s.tokens(t, &t.split.Messages[item.Index])
		default:
			out[i] = s.tokens(t, &session.Message{Raw: item.Raw, Digest: sha256.Sum256(item.Raw)})
		}
	}
	return out
}

// sameBytes reports whether two slices are one.
func sameBytes(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

func sum(ns []int) int {
	total := 0
	for _, n := range ns {
		total += n
	}
	return total
}

// adjust corrects a count by what was observed of the model, and by what upstream said of this very request.
func (s *Server) adjust(t *turn, n int) int {
	return max(s.o.Tokens.Adjust(t.split.Model, n), int(t.scale*float64(n)))
}

// input is what the condenser decides on: the view as it stands, counts corrected by what upstream has reported of the
// model.
func (s *Server) input(t *turn) condense.Input {
	return s.inputOf(t, t.counted().fixed, s.size(t).Tokens)
}

// settled reports whether nothing is to be done for the view even if it had as many tokens as it can have at most. More
// tokens never make less due.
func (s *Server) settled(t *turn) bool {
	if t.need.Reason != "" || t.wish == "now" {
		return false
	}
	d := t.tenant.Condenser.Condense(s.inputOf(t, s.fixed(t), s.sizeOf(t, s.atMost(t)).Tokens))
	return d.View == nil && d.Job == nil
}

// inputOf is the input where the view has so many tokens, and so many others are fixed; both before calibration.
func (s *Server) inputOf(t *turn, fixed, total int) condense.Input {
	adjust := func(n int) int { return s.adjust(t, n) }
	in := condense.Input{
		View:   &t.view,
		Total:  adjust(total),
		Fixed:  adjust(fixed),
		Count:  func(text string) int { return adjust(t.counter.Text(text)) },
		Window: t.model.Window,
		Model:  t.split.Model,
		Upstream: condense.Endpoint{
			BaseURL: t.tenant.Upstream.BaseURL.String(), APIKey: t.upstreamKey(),
		},
		Codec:    t.dialect,
		Reserved: reserved(t.split.MaxOutput, t.model),

		NeedsReasoning: t.split.NeedsReasoning,
		Cooling:        t.tenant.Cooldown.Cooling(s.o.Now()),
		Now:            s.o.Now(),
	}
	in.Measure = func(items []session.Item) []int {
		counts := s.itemTokens(t, items)
		for i := range counts {
			counts[i] = adjust(counts[i])
		}
		return counts
	}
	if t.need.Reason != "" {
		in.Need = t.need
	} else if t.wish == "now" && len(t.report) == 0 {
		in.Need = condense.Need{Reason: session.ReasonRequest, Hard: true}
	} else if t.place.Thread.Requested > 0 && !t.place.New {
		in.Need = condense.Need{Reason: session.ReasonRequest, Hard: true} // pending until a condensation is logged
	}
	return in
}

// reserved is the room the answer needs: what the client allows, or else what the model may take at most, within reason.
func reserved(asked int, model ModelInfo) int {
	if asked > 0 {
		return asked
	}
	return min(model.MaxOutput, model.Window/8)
}

func (t *turn) upstreamKey() string {
	if t.tenant.Upstream.APIKey != "" {
		return t.tenant.Upstream.APIKey
	}
	return t.key
}
