package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Tally is the token counts of a history's chained messages, from position From on.
type Tally struct {
	Encoding string
	From     int
	Cum      []int // Cum[i] counts the first From+i chained messages
	System   int   // tokens of the system messages, which are not in the chain

	// Count returns the tokens of the message at position p, which is at most From. Append calls it if the part of the history
	// whose total was known has disappeared from the store. If Count is nil then, Append fails.
	Count func(p int) int
}

// extend makes a tally that begins after position from begin there. total is the token count up to from.
func (t *Tally) extend(from, total int) error {
	if from >= t.From {
		return nil
	}
	if t.Count == nil {
		return fmt.Errorf("token counts begin at position %d, but are needed from %d", t.From, from)
	}
	cum := append(make([]int, 0, t.From-from+len(t.Cum)), total)
	for p := from + 1; p <= t.From; p++ {
		total += t.Count(p)
		cum = append(cum, total)
	}
	shift := total - t.Cum[0]
	for _, n := range t.Cum[1:] {
		cum = append(cum, n+shift)
	}
	t.From, t.Cum = from, cum
	return nil
}

// Total counts the first p positions; p must not be below From.
func (t *Tally) Total(p int) int { return t.Cum[p-t.From] }

// Tokens counts the message at position p; p must be above From.
func (t *Tally) Tokens(p int) int { return t.Cum[p-t.From] - t.Cum[p-t.From-1] }

// CountedFrom returns the position after which Append needs token counts in the given encoding. The total up to that
// position is known.
func (res *Resolution) CountedFrom(encoding string) int {
	logged := res.Logged
	if res.Base != nil {
		logged = res.Base.Logged
	}
	if res.Known.Encoding != encoding || res.Known.Pos > logged {
		return 0
	}
	return res.Known.Pos
}

// Append logs the new messages of a resolved history and indexes them. If another request was faster, it logs only the
// messages that are still missing, in a separate thread if necessary, and updates the resolution.
func (r *Registry) Append(ctx context.Context, res *Resolution, tally *Tally) error {
	if res.Base != nil {
		if err := r.Append(ctx, res.Base, tally); err != nil {
			return err
		}
		res.Thread.Parent, res.Thread.Session = res.Base.Thread.ID, res.Base.Thread.Session
		res.parentCreated = res.Base.Thread.Created
	}
	for attempt := range maxAppends {
		err := r.appendOnce(ctx, res, tally, attempt == 0)
		if !errors.Is(err, ErrStale) {
			return err
		}
		if err := r.catchUp(ctx, res); err != nil {
			return err
		}
	}
	return fmt.Errorf("append to thread %s: %w", res.Thread.ID, ErrStale)
}

// appendOnce makes one attempt to append. On the first attempt, a new thread may refer to other threads' log entries for content that
// they store already. If one of those threads is deleted in the meantime, the store returns ErrStale, and the next attempt logs all content.
func (r *Registry) appendOnce(ctx context.Context, res *Resolution, tally *Tally, first bool) error {
	if res.Match == MatchReplay {
		return nil // the thread holds the whole history already
	}
	from, total := res.CountedFrom(tally.Encoding), 0
	if from > 0 {
		total = res.Known.Tokens
	}
	if err := tally.extend(from, total); err != nil {
		return fmt.Errorf("append to thread %s: %w", res.Thread.ID, err)
	}
	b := r.batch(res, tally)
	if len(b.Events) == 0 && len(b.Places) == 0 {
		return nil
	}
	if first && res.New && !res.Begins {
		r.share(ctx, &b, res.query.History)
	}
	if err := r.store.Append(ctx, b); err != nil {
		return fmt.Errorf("append to thread %s: %w", res.Thread.ID, err)
	}
	res.Thread, res.New, res.Logged = b.Thread, false, b.Thread.Len
	r.hints.Add(b.Thread.Head, b.Thread.ID)
	return nil
}

// catchUp updates a resolution whose thread has moved on. If the history no longer continues that thread, it is resolved
// again.
func (r *Registry) catchUp(ctx context.Context, res *Resolution) error {
	thread, err := r.readThread(ctx, res.Thread.ID)
	if err != nil {
		return fmt.Errorf("append: %w", err)
	}
	if thread != nil && res.query.History.Covers(thread.Len, thread.Head) {
		res.Thread, res.New, res.Logged, res.Match = *thread, false, thread.Len, MatchEnd
		return nil
	}
	q := res.query
	q.Purpose, q.randomNames = res.Thread.Purpose, true
	again, err := r.Resolve(ctx, q)
	if err != nil {
		return err
	}
	if again.Match == MatchInside && again.Thread.Parent == res.Thread.ID {
		again.Thread.Session = res.Thread.Session
	}
	again.Base = nil
	*res = again
	return nil
}

// batch returns the append for a resolution: the messages that are not logged, and index entries for those that are not
// indexed. An append that was interrupted may have left a log without its index.
func (r *Registry) batch(res *Resolution, tally *Tally) Batch {
	h, b := res.query.History, r.newBatch(res)
	t := &b.Thread
	for p := res.Logged + 1; p <= h.Len(); p++ {
		m := h.Message(p)
		b.Events = append(b.Events, Event{
			Pos: p, Kind: m.Kind, Digest: m.Digest, Chain: h.Chain[p], Tokens: tally.Tokens(p), Time: t.Seen, Payload: m.Payload(),
		})
		if res.New && !res.Begins && m.Kind.ByModel() && !h.callsUnique(m) { // the client probably edits its history at each step
			b.Traces.add(answerTrace(h, t.Session, m), m.sampled())
		}
	}
	got := res.Logged
	if res.New && !res.Begins { // a client that edits its history sends results again
		got = max(got, h.lastByModel())
	}
	b.Traces.Recent = b.Traces.Recent[max(0, len(b.Traces.Recent)-newestAnswers):]
	h.traceResults(&b.Traces, res.Logged, got)
	t.Len = max(res.Logged, h.Len())
	t.Head = h.Chain[t.Len]
	r.index(&b, res, tally)
	return b
}

// index adds the places of a history's positions that are to be indexed and are not yet, and those that are no longer to be.
func (r *Registry) index(b *Batch, res *Resolution, tally *Tally) {
	h, t := res.query.History, &b.Thread
	for p := min(res.Logged, max(res.Known.Pos, t.ForkAt)) + 1; p <= h.Len(); p++ {
		if p <= h.Len()-newestIndex && !t.staysIndexed(p) {
			continue
		}
		b.Places = append(b.Places, IndexEntry{Hash: h.Chain[p], Place: Place{
			Thread: t.ID, Session: t.Session, Pos: p, Tokens: tally.Total(p), Encoding: tally.Encoding,
		}})
	}
	for p := max(res.Logged-newestIndex, t.ForkAt) + 1; p <= min(res.Logged, h.Len()-newestIndex); p++ {
		if !t.staysIndexed(p) {
			b.Passed = append(b.Passed, h.Chain[p])
		}
	}
}

// newBatch returns a batch without the resolution's messages. It contains the system messages if they differ from those that the thread
// was last seen with, and the trace of the session key if the thread is new.
func (r *Registry) newBatch(res *Resolution) Batch {
	h := res.query.History
	b := Batch{Thread: res.Thread, Key: res.query.Scope.Key, At: res.Logged, ParentCreated: res.parentCreated}
	b.Thread.Seen = time.Now()
	if system := systemDigest(h.Messages); system != b.Thread.System {
		b.Thread.System = system
		b.Events = systemEvents(h, b.Thread.Seen)
	}
	if res.New && b.Key != "" {
		b.Traces.Lasting = append(b.Traces.Lasting, KeyTrace(h.Chain[0]))
	}
	return b
}

// apart is Event.After of a message that is Message.Apart.
const apart = -1

func systemEvents(h *History, now time.Time) []Event {
	var events []Event
	after := 0
	for i := range h.Messages {
		m := &h.Messages[i]
		if m.Kind != System {
			after = h.Pos(i)
			continue
		}
		e := Event{Kind: System, Digest: m.Digest, After: after, Time: now, Payload: m.Raw}
		if m.Apart {
			e.After = apart
		}
		events = append(events, e)
	}
	return events
}

// systemDigest returns SystemDigest of the system messages among messages.
func systemDigest(messages []Message) Hash {
	var digests []Hash
	for i := range messages {
		if messages[i].Kind == System {
			digests = append(digests, messages[i].Digest)
		}
	}
	return SystemDigest(digests)
}

// SystemDigest returns Thread.System for a request whose system messages have these digests.
func SystemDigest(digests []Hash) (d Hash) {
	for _, digest := range digests {
		d = Next(d, digest)
	}
	return d
}

// Answered records that an answer was relayed to the client: it marks the history as answered and stores the traces of the answer. kept
// are the traces of the ids under which upstream stores the answer (KeptTrace). The resolution must have been appended.
func (r *Registry) Answered(ctx context.Context, res *Resolution, text string, callIDs, arguments []string, kept ...Hash) error {
	h := res.query.History
	seed := h.Chain[0]
	traces := Traces{
		Lasting: kept,
		Recent:  append(AnswerTraces(seed, text, arguments), CallTraces(seed, callIDs)...),
		First:   firstCallTraces(seed, callIDs),
	}
	traces.add(AnsweredTrace(h.Head()), res.opening)
	if id := res.query.Request; id != "" {
		traces.Request = RequestKey(id)
	}
	at := Place{Thread: res.Thread.ID, Session: res.Thread.Session, Pos: h.Len()}
	if err := r.store.Mark(ctx, at, traces); err != nil {
		return fmt.Errorf("mark answer: %w", err)
	}
	return nil
}

// Condense logs a condensation of a view in the resolution's thread, which must have been appended. It returns the
// condensation with its id and base, and with the current time if it had none.
func (r *Registry) Condense(ctx context.Context, res *Resolution, view *View, c Condensation) (Condensation, error) {
	if c.Time.IsZero() {
		c.Time = time.Now()
	}
	c.buildOn(view)
	c.Hidden = hiddenBy(res.query.History, &c)
	c, err := r.store.Condense(ctx, res.Thread.ID, c)
	if err != nil {
		return c, fmt.Errorf("log condensation: %w", err)
	}
	r.summaries.Add(summaryKeyOf(&c), c.Summary)
	if c.Answers() {
		res.Thread.Requested = 0
	}
	withoutText := c
	withoutText.Summary = ""
	res.Thread.Condensations = append(slices.Clip(res.Thread.Condensations), withoutText)
	return c, nil
}

// Refresh reads the resolution's thread again, because another replica may have condensed it. If the thread was deleted, Refresh returns
// ErrNotFound, even if another request has since begun a thread with the same id: that log need not contain the resolution's messages.
func (r *Registry) Refresh(ctx context.Context, res *Resolution) error {
	if res.New {
		return nil
	}
	t, err := r.store.Thread(ctx, res.Thread.ID)
	if err == nil && !t.Created.Equal(res.Thread.Created) {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("refresh thread: %w", err)
	}
	res.Thread = t
	return nil
}
