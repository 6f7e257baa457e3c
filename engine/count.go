package engine

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// replyPriming is what every request costs apart from its messages, in tokens.
const replyPriming = 3

// counts is what a request measures, before calibration.
type counts struct {
	tally  session.Tally
	fixed  int          // tokens of tools and priming
	before session.Size // the history as the client sent it
}

// count tallies the history: what the log knows in total, and each message after that.
func (t *Turn) count(place *session.Resolution) *counts {
	c := &counts{tally: t.beginTally(place), fixed: t.fixed()}
	t.countAhead(c.tally.From)
	for p := c.tally.From + 1; p <= t.history.Len(); p++ {
		c.tally.Cum = append(c.tally.Cum, c.tally.Total(p-1)+t.lastingTokens(t.history.Message(p)))
	}
	c.tally.System = t.systemTokens()
	c.before = session.Size{Events: len(t.in.Split.Messages), Tokens: c.fixed + c.tally.System + c.tally.Total(t.history.Len())}
	return c
}

// From muchToCount bytes of messages on, counting is shared among at most so many processors.
const (
	muchToCount = 64 << 10
	counters    = 4
)

// countAhead counts the messages after a position in parallel, if they are many: in a history that is seen for the first time.
func (t *Turn) countAhead(from int) {
	size := 0
	for p := from + 1; p <= t.history.Len(); p++ {
		size += len(t.history.Message(p).Raw)
	}
	workers := min(runtime.GOMAXPROCS(0), counters, size/muchToCount+1, t.history.Len()-from)
	if workers < 2 {
		return
	}
	var next atomic.Int64
	next.Store(int64(from))
	count := func() {
		for p := next.Add(1); p <= int64(t.history.Len()); p = next.Add(1) {
			t.tokens(t.history.Message(int(p)))
		}
	}
	var others sync.WaitGroup
	for range workers - 1 {
		others.Go(func() {
			defer func() { _ = recover() }() // what was not counted is counted by the caller, and panics there
			count()
		})
	}
	count()
	others.Wait()
}

func (t *Turn) beginTally(place *session.Resolution) session.Tally {
	from := place.CountedFrom(t.counter.Encoding())
	tally := session.Tally{Encoding: t.counter.Encoding(), From: from, Cum: make([]int, 1, t.history.Len()-from+1)}
	tally.Count = func(p int) int { return t.lastingTokens(t.history.Message(p)) }
	if from > 0 {
		tally.Cum[0] = place.Known.Tokens
	}
	return tally
}

func (t *Turn) systemTokens() (n int) {
	for i := range t.in.Split.Messages {
		switch m := &t.in.Split.Messages[i]; {
		case m.Kind == session.System:
			n += t.tokens(m)
		case m.Lasting != nil:
			n += t.tokens(m) - t.lastingTokens(m)
		}
	}
	return n
}

// fixed counts tools and priming. The same tools come with every request.
func (t *Turn) fixed() int {
	if len(t.in.Split.Tools) == 0 {
		return replyPriming
	}
	key := t.engine.counts.key(t.counter.Encoding(), t.in.Split.Tools)
	return replyPriming + t.toolTokens() + t.engine.counts.of(key, func() int { return t.counter.Tools(t.in.Split.Tools) })
}

// atMost is an upper bound of the view's tokens, found without counting what is new.
func (t *Turn) atMost() int {
	if !t.shown.view.Identity() {
		return t.fixed() + sum(t.itemsBy(t.tokensAtMost, t.shown.view.Items))
	}
	n, from := t.fixed()+t.systemTokens(), t.place.CountedFrom(t.counter.Encoding())
	if from > 0 {
		n += t.place.Known.Tokens
	}
	for p := from + 1; p <= t.history.Len(); p++ {
		n += t.tokensAtMost(t.history.Message(p))
	}
	return n
}

// tokensAtMost bounds a message's tokens: a token has at least one byte, except in images and files.
func (t *Turn) tokensAtMost(m *session.Message) int {
	known, ok := t.engine.counts.get(t.engine.counts.message(t.counter.Encoding(), m))
	switch {
	case m.Lasting != nil:
		return len(m.Raw)
	case ok:
		return known
	case m.Attached:
		return t.tokens(m)
	}
	return len(m.Raw)
}

// head bounds what a client can put into the log, and into memory: it is a copy.
func head(s string) string { return strings.Clone(s[:min(len(s), 64)]) }

// tokens counts one message.
func (t *Turn) tokens(m *session.Message) int {
	if m.Lasting != nil { // its digest is of that
		m = ours(m.Raw)
	}
	return t.engine.counts.of(t.engine.counts.message(t.counter.Encoding(), m), func() int {
		c, err := t.in.Dialect.Read(m.Raw)
		if err != nil {
			return len(m.Raw)/3 + 1 // a conservative guess, never nothing
		}
		return t.counter.Message(c)
	})
}
