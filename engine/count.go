package engine

import (
	"crypto/sha256"
	"hash/maphash"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

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
	encoding, n := t.counter.Encoding(), t.history.Len()
	from := place.CountedFrom(encoding)
	tally := session.Tally{Encoding: encoding, From: from, Cum: make([]int, 1, n-from+1)}
	tally.Count = func(p int) int { return t.lastingTokens(t.history.Message(p)) }
	if from > 0 {
		tally.Cum[0] = place.Known.Tokens
	}
	t.countAhead(from)
	for p := from + 1; p <= n; p++ {
		tally.Cum = append(tally.Cum, tally.Total(p-1)+tally.Count(p))
	}
	tally.System = t.systemTokens()
	c := &counts{tally: tally, fixed: t.fixed()}
	c.before = session.Size{Events: len(t.in.Split.Messages), Tokens: c.fixed + tally.System + tally.Total(n)}
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
	n := replyPriming + t.textTokens(t.in.Split.Tools, func() int { return t.counter.Tools(t.in.Split.Tools) })
	for _, tool := range t.hidden.tools {
		text := tool.Name + "\n" + tool.Description + "\n" + tool.Parameters
		n += t.textTokens([]byte(text), func() int { return t.counter.Text(text) })
	}
	return n
}

// textTokens counts a text, once.
func (t *Turn) textTokens(text []byte, count func() int) int {
	return t.engine.counts.of(t.engine.counts.key(t.counter.Encoding(), text), count)
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

// countCache remembers token counts by content, so that a message is counted once and a request pays for its new messages
// only.
type countCache struct {
	seed   maphash.Seed // of the process: a client cannot look for contents that collide
	counts *lru.Cache[countKey, int]
}

type countKey struct {
	hash     uint64
	size     int
	encoding string
}

const countsKept = 1 << 15 // about 5 MB

func newCountCache() *countCache {
	return &countCache{maphash.MakeSeed(), cache[countKey, int](countsKept)}
}

func (c *countCache) key(encoding string, content []byte) countKey {
	return countKey{maphash.Bytes(c.seed, content), len(content), encoding}
}

// message is the key of a message. Reasoning is counted, but is not a part of its digest; its size tells it.
func (c *countCache) message(encoding string, m *session.Message) countKey {
	return countKey{maphash.Bytes(c.seed, m.Digest[:]), len(m.Raw), encoding}
}

func (c *countCache) get(key countKey) (int, bool) { return c.counts.Get(key) }

func (c *countCache) of(key countKey, count func() int) int {
	if n, ok := c.get(key); ok {
		return n
	}
	n := count()
	c.counts.Add(key, n)
	return n
}

// size measures the view that is forwarded, before calibration: item by item, unless it is the history as the client sent it.
func (t *Turn) size() session.Size {
	view := &t.shown.view
	if view.Identity() {
		return session.Size{Events: len(view.Items), Tokens: t.counted().before.Tokens + t.tailTokens()}
	}
	items := view.Items
	if t.alternates() {
		items, _ = t.written()
	}
	return session.Size{Events: len(view.Items), Tokens: t.counted().fixed + sum(t.itemTokens(items)) + t.tailTokens()}
}

// tailTokens counts what the model said in this turn so far.
func (t *Turn) tailTokens() int {
	if len(t.hidden.tail) == 0 {
		return 0
	}
	return sum(t.itemTokens([]session.Item{{Parts: t.hidden.tail}}))
}

// measured gives a condensation with token counts as the log keeps them: the whole as upstream charges it, parts before calibration, and
// both of what the log gives, whatever a condenser makes of that.
func (t *Turn) measured(c session.Condensation) session.Condensation {
	if n := len(t.shown.applied); n > 0 {
		c.Base = t.shown.applied[n-1].ID
	}
	var before, after int
	c.Before, before = t.charged(t.project(t.shown.applied))
	c.After, after = t.charged(t.project(append(slices.Clip(t.shown.applied), c)))
	c.ForgottenTokens, c.Request = before-after, head(t.in.Split.Model)
	if c.Summary != "" {
		c.SummaryTokens = t.summaryTokens(c.Summary)
	}
	return c
}

// charged measures a projection as upstream charges it, as far as that is known, and counts it without its summary.
func (t *Turn) charged(p projection) (whole session.Size, messages int) {
	counts := t.itemTokens(p.view.Items)
	for i, n := range counts {
		if p.view.Items[i].Index >= 0 {
			messages += n
		}
	}
	return session.Size{Events: len(counts), Tokens: t.Adjust(t.counted().fixed + sum(counts))}, messages
}

// itemTokens counts items; those that a condenser rewrote as they are now.
func (t *Turn) itemTokens(items []session.Item) []int { return t.itemsBy(t.tokens, items) }

func (t *Turn) itemsBy(tokens func(*session.Message) int, items []session.Item) []int {
	out := make([]int, len(items))
	for i := range items {
		switch item := &items[i]; {
		case item.Parts != nil:
			for _, raw := range item.Parts {
				out[i] += tokens(ours(raw))
			}
		case item.Index >= 0:
			out[i] = tokens(t.message(item))
		case item.Summary != "":
			out[i] = t.summaryTokens(item.Text())
		default: // a message of ours between others
			out[i] = tokens(ours(item.Raw))
		}
	}
	return out
}

// ours is a message that no client sent.
func ours(raw []byte) *session.Message { return &session.Message{Raw: raw, Digest: sha256.Sum256(raw)} }

// summaryTokens counts the message that carries a summary.
func (t *Turn) summaryTokens(text string) int {
	return t.textTokens([]byte(text), func() int { return t.counter.Message(session.Content{Role: "user", Text: text}) })
}

// message is an item that is no summary, as it is shown.
func (t *Turn) message(item *session.Item) *session.Message {
	own := &t.in.Split.Messages[item.Index]
	if sameBytes(item.Raw, own.Raw) {
		return own
	}
	m := ours(item.Raw)
	m.Attached = own.Attached
	return m
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
func (t *Turn) adjust(count int) int {
	n := t.Adjust(count)
	if r := &t.relief; r.ours > 0 && r.files == 0 {
		return max(n, int(float64(r.theirs)/float64(r.ours)*float64(count)))
	}
	return n
}

// fileTokens counts the messages of the view that have images or files.
func (t *Turn) fileTokens() (n int) {
	for i := range t.shown.view.Items {
		if item := &t.shown.view.Items[i]; item.Index >= 0 && t.in.Split.Messages[item.Index].Attached {
			n += t.tokens(t.message(item))
		}
	}
	return n
}

// corrector names what corrects counts. What is learnt where there are images or files, which are estimated, does not hold for text
// alone.
func (t *Turn) corrector(attached bool) string {
	name := t.counter.source
	if attached {
		name[0] ^= 1
	}
	return string(name[:])
}
