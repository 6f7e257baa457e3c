package engine

import (
	"crypto/sha256"
	"hash/maphash"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine/lessons"
	"github.com/dewpoint-proxy/dewpoint/internal/lru"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// replyPriming is what every request costs in addition to its messages and tools, in tokens.
const replyPriming = 3

// counts are the token counts of a request, uncalibrated.
type counts struct {
	tally  session.Tally
	fixed  int          // tools and priming
	before session.Size // the history as the client sent it
	blocks int          // see Turn.NewBlocks
}

// count counts the history: messages that the log knows in total, and each later one.
func (t *Turn) count(place *session.Resolution) *counts {
	encoding, n := t.counter.Encoding(), t.history.Len()
	from := place.CountedFrom(encoding)
	tally := session.Tally{Encoding: encoding, From: from, Cum: make([]int, 1, n-from+1)}
	tally.Count = func(p int) int { return t.lastingTokens(t.history.Message(p)) }
	if from > 0 {
		tally.Cum[0] = place.Known.Tokens
	}
	t.countConcurrently(from)
	for p := from + 1; p <= n; p++ {
		tally.Cum = append(tally.Cum, tally.Total(p-1)+tally.Count(p))
	}
	tally.System = t.systemTokens()
	c := &counts{tally: tally, fixed: t.fixed()}
	c.before = session.Size{Events: len(t.in.Split.Messages), Tokens: c.fixed + tally.System + tally.Total(n)}
	c.blocks = t.blocksSince(from)
	return c
}

// blocksSince returns how many blocks of content the messages after position from have, 0 if there are none before them or the protocol has no
// cache marks.
func (t *Turn) blocksSince(from int) (n int) {
	d, marks := t.in.Dialect.(dialect.Marker)
	if !marks || from == 0 {
		return 0
	}
	for p := from + 1; p <= t.history.Len(); p++ {
		n += d.Blocks(t.history.Message(p).Raw)
	}
	return n
}

// Counting uses one goroutine for each bytesPerWorker bytes of messages, up to maxWorkers.
const (
	bytesPerWorker = 64 << 10
	maxWorkers     = 4
)

// countConcurrently fills the count cache with the messages after position from, if there is enough to count: on the first request of a
// long history.
func (t *Turn) countConcurrently(from int) {
	size := 0
	for p := from + 1; p <= t.history.Len(); p++ {
		size += len(t.history.Message(p).Raw)
	}
	workers := min(runtime.GOMAXPROCS(0), maxWorkers, size/bytesPerWorker+1, t.history.Len()-from)
	if workers < 2 {
		return
	}
	var next atomic.Int64
	next.Store(int64(from))
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			defer func() { _ = recover() }() // the caller counts that message again, and panics in its own goroutine
			for p := next.Add(1); p <= int64(t.history.Len()); p = next.Add(1) {
				t.tokens(t.history.Message(int(p)))
			}
		})
	}
	all.Wait()
}

// systemTokens counts the system messages, and the parts of others that are sent for one request only.
func (t *Turn) systemTokens() (n int) {
	for i := range t.in.Split.Messages {
		m := &t.in.Split.Messages[i]
		switch {
		case m.Kind == session.System:
			n += t.tokens(m)
		case m.Lasting != nil:
			n += t.tokens(m) - t.lastingTokens(m)
		}
	}
	return n
}

// fixed counts tools and priming.
func (t *Turn) fixed() int {
	n := replyPriming
	if len(t.in.Split.Tools) == 0 {
		return n
	}
	// Upstream rewrites the tools more compactly, so their JSON counts slightly too much; calibration learns by how much.
	n += t.textTokens(t.in.Split.Tools, func() int { return t.counter.Text(string(t.in.Split.Tools)) })
	for _, tool := range t.hidden.tools {
		text := tool.Name + "\n" + tool.Description + "\n" + tool.Parameters
		n += t.textTokens([]byte(text), func() int { return t.counter.Text(text) })
	}
	return n
}

// textTokens returns the count of a text, which it keeps in the count cache.
func (t *Turn) textTokens(text []byte, count func() int) int {
	return t.engine.counts.getOrCount(t.engine.counts.key(t.counter.Encoding(), text), count)
}

// maxTokens returns an upper bound of the view's tokens, without counting new messages.
func (f *Form) maxTokens() int {
	if !f.shown.view.Identity() {
		return f.turn.fixed() + sum(f.itemTokens(f.turn.maxMessageTokens, f.shown.view.Items))
	}
	n, from := f.turn.fixed()+f.turn.systemTokens(), f.place.CountedFrom(f.turn.counter.Encoding())
	if from > 0 {
		n += f.place.Known.Tokens
	}
	for p := from + 1; p <= f.turn.history.Len(); p++ {
		n += f.turn.maxMessageTokens(f.turn.history.Message(p))
	}
	return n
}

// maxMessageTokens returns an upper bound of a message's tokens. Except in images and files, a token has at least one byte.
func (t *Turn) maxMessageTokens(m *session.Message) int {
	known, ok := t.engine.counts.byKey.Get(t.engine.counts.messageKey(t.counter.Encoding(), m))
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

// clip bounds a text that a client chose before it is logged or kept in memory. It returns a copy.
func clip(s string) string { return strings.Clone(s[:min(len(s), 64)]) }

// tokens counts a message.
func (t *Turn) tokens(m *session.Message) int {
	if m.Lasting != nil { // the digest covers only the lasting part
		m = newMessage(m.Raw)
	}
	key := t.engine.counts.messageKey(t.counter.Encoding(), m)
	if t.knows(m) {
		return t.engine.counts.getOrCount(key, func() int { return t.read(m) })
	}
	if n, ok := t.engine.counts.byKey.Get(key); ok {
		return n
	}
	return t.read(m)
}

// read counts a message without the count cache.
func (t *Turn) read(m *session.Message) int {
	c, err := t.in.Dialect.Read(m.Raw)
	if err != nil {
		return len(m.Raw)/3 + 1 // a high estimate, never 0
	}
	return t.counter.Message(c)
}

// countCache remembers token counts by content, so that a message that is sent again need not be counted again.
type countCache struct {
	seed  maphash.Seed // differs between processes, so a client cannot prepare colliding contents
	byKey lru.Cache[countKey, int]
}

type countKey struct {
	hash     uint64
	size     int
	encoding string
}

const countsKept = 1 << 15 // about 5 MB

func newCountCache() *countCache {
	return &countCache{maphash.MakeSeed(), lru.New[countKey, int](countsKept)}
}

func (c *countCache) key(encoding string, content []byte) countKey {
	return countKey{maphash.Bytes(c.seed, content), len(content), encoding}
}

// messageKey returns the key of a message. Its size is part of it because the digest does not cover reasoning, which is counted. The ids
// that a message refers to are covered.
func (c *countCache) messageKey(encoding string, m *session.Message) countKey {
	size := len(m.Raw)
	if len(m.Refers) > 0 {
		size = 0
	}
	return countKey{maphash.Bytes(c.seed, m.Digest[:]), size, encoding}
}

func (c *countCache) getOrCount(key countKey, count func() int) int {
	if n, ok := c.byKey.Get(key); ok {
		return n
	}
	n := count()
	c.byKey.Add(key, n)
	return n
}

// Origins are the tokens of what goes upstream by where they come from, uncalibrated.
type Origins struct {
	System int // the system prompt and notes
	Tools  int // and what every request costs
	Head   int // messages before the first record
	Record int // summaries and excerpts
	Kept   int // messages after it that earlier requests had, or all such messages if there is no record
	New    int // messages that no earlier request had, and hidden calls with their results
}

// Composition returns the size of what goes upstream, uncalibrated, and where its tokens come from. It counts the view once.
func (f *Form) Composition() (session.Size, Origins) {
	if f.verbatim() || f.shown.view.Identity() {
		size, c := f.Sent(), f.turn.counted()
		o := Origins{System: c.tally.System, Tools: c.fixed, Kept: max(f.turn.Known()-c.tally.System-c.fixed, 0)}
		o.New = size.Tokens - o.System - o.Tools - o.Kept
		return size, o
	}
	if f.alternates() { // messages are merged
		size, o := f.Sent(), f.origins(f.itemTokens(f.turn.tokens, f.shown.view.Items))
		o.Kept = max(size.Tokens-(o.System+o.Tools+o.Head+o.Record+o.New), 0)
		return size, o
	}
	o := f.origins(f.itemTokens(f.turn.tokens, f.shown.view.Items))
	return session.Size{Events: len(f.shown.view.Items), Tokens: o.System + o.Tools + o.Head + o.Record + o.Kept + o.New}, o
}

// origins sorts the tokens of the view's items by where these come from.
func (f *Form) origins(tokens []int) Origins {
	o := Origins{Tools: f.turn.counted().fixed, New: f.tailTokens()}
	items, known := f.shown.view.Items, f.turn.counted().tally.From
	record := slices.IndexFunc(items, func(i session.Item) bool { return i.Index < 0 && i.Summary != "" })
	for i, n := range tokens {
		switch index := items[i].Index; {
		case index < 0:
			o.Record += n
		case f.turn.in.Split.Messages[index].Kind == session.System:
			o.System += n
		case f.turn.history.Pos(index) > known:
			o.New += n
		case i < record:
			o.Head += n
		default:
			o.Kept += n
		}
	}
	return o
}

// size returns the size of the view, uncalibrated. If the view is the history as the client sent it, the size is known; otherwise it counts each
// item.
func (f *Form) size() session.Size {
	view := &f.shown.view
	if view.Identity() {
		return session.Size{Events: len(view.Items), Tokens: f.turn.counted().before.Tokens + f.tailTokens()}
	}
	items := view.Items
	if f.alternates() {
		items, _ = f.rendered()
	}
	return session.Size{Events: len(view.Items), Tokens: f.turn.counted().fixed + sum(f.itemTokens(f.turn.tokens, items)) + f.tailTokens()}
}

// tailTokens counts the hidden calls of this turn and their results.
func (f *Form) tailTokens() int {
	if len(f.calls.tail) == 0 {
		return 0
	}
	return sum(f.itemTokens(f.turn.tokens, []session.Item{{Parts: f.calls.tail}}))
}

// withSizes returns a condensation with its base and token counts set. Before and After are calibrated, as upstream charges them; counts
// of parts are not. All are counts of the logged view, whatever the condenser makes of it.
func (f *Form) withSizes(c session.Condensation) session.Condensation {
	if n := len(f.shown.applied); n > 0 {
		c.Base = f.shown.applied[n-1].ID
	}
	var before, after int
	c.Before, before = f.charged(f.project(f.shown.applied))
	c.After, after = f.charged(f.project(append(slices.Clip(f.shown.applied), c)))
	c.ForgottenTokens, c.Request = before-after, clip(f.turn.in.Split.Model)
	if c.Summary != "" {
		c.SummaryTokens = f.turn.summaryTokens(c.Summary)
	}
	return c
}

// charged returns the size of a projection, calibrated, and the uncalibrated tokens of the client's messages in it.
func (f *Form) charged(p projection) (whole session.Size, messages int) {
	counts := f.itemTokens(f.turn.tokens, p.view.Items)
	for i, n := range counts {
		if p.view.Items[i].Index >= 0 {
			messages += n
		}
	}
	return session.Size{Events: len(counts), Tokens: f.Adjust(f.turn.counted().fixed + sum(counts))}, messages
}

// itemTokens counts items by the tokens of their messages. Those that a condenser rewrote are counted as rewritten.
func (f *Form) itemTokens(tokens func(*session.Message) int, items []session.Item) []int {
	out := make([]int, len(items))
	for i := range items {
		item := &items[i]
		switch {
		case item.Parts != nil:
			for _, raw := range item.Parts {
				out[i] += tokens(newMessage(raw))
			}
		case item.Index >= 0:
			out[i] = tokens(f.itemMessage(item))
		case item.Summary != "":
			out[i] = f.turn.summaryTokens(item.Text())
		default: // inserted between others, to alternate roles
			out[i] = tokens(newMessage(item.Raw))
		}
	}
	return out
}

// newMessage returns a message that is not in the client's request.
func newMessage(raw []byte) *session.Message {
	return &session.Message{Raw: raw, Digest: sha256.Sum256(raw)}
}

// summaryTokens counts the message that carries a summary.
func (t *Turn) summaryTokens(text string) int {
	return t.textTokens([]byte(text), func() int { return t.counter.Message(session.Content{Role: "user", Text: text}) })
}

// itemMessage returns the message of an item that is not a summary, as it is shown.
func (f *Form) itemMessage(item *session.Item) *session.Message {
	own := &f.turn.in.Split.Messages[item.Index]
	if f.shown.view.Verbatim(item) {
		return own
	}
	m := newMessage(item.Raw)
	m.Attached = own.Attached
	return m
}

func sum(ns []int) int {
	total := 0
	for _, n := range ns {
		total += n
	}
	return total
}

// calibrate is Adjust, but also takes into account what upstream has reported about this very request.
func (f *Form) calibrate(count int) int {
	n := f.Adjust(count)
	if r := &f.relief; r.ours > 0 && r.files == 0 {
		return max(n, int(float64(r.theirs)/float64(r.ours)*float64(count)))
	}
	return n
}

// fileTokens counts the messages of the view that have images or files.
func (f *Form) fileTokens() (n int) {
	for i := range f.shown.view.Items {
		if item := &f.shown.view.Items[i]; item.Index >= 0 && f.turn.in.Split.Messages[item.Index].Attached {
			n += f.turn.tokens(f.itemMessage(item))
		}
	}
	return n
}

// calibrations are the names under which counts are calibrated: the client's and the model's, since what upstream reports to one client corrects
// no other client's counts.
type calibrations struct {
	text     string
	attached string // of requests with images or files: their counts are estimates, which say nothing about text
}

func calibrationsOf(own lessons.Source) calibrations {
	text := string(own[:])
	own[0] ^= 1
	return calibrations{text, string(own[:])}
}

// calibration returns the name under which the turn's counts are calibrated.
func (t *Turn) calibration(attached bool) string {
	if attached {
		return t.calibrations.attached
	}
	return t.calibrations.text
}
