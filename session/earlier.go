package session

import (
	"context"
	"errors"
	"slices"
)

// Bounds of Earlier.
const (
	maxEarlierThreads = 16
	maxEarlierEvents  = 4096
	maxEarlierBytes   = 4 << 20 // total size of payloads; the last page may exceed it
	earlierPage       = 32      // entries
	firstEntries      = 8       // entries per page when looking for a thread's first message
)

// Earlier is the part of a conversation before the history that its client sends.
type Earlier struct {
	Threads  []EarlierThread // nearest first; as the conversation goes on, the order and the numbers stay the same
	Readable bool            // false if some events have no content because it was not stored or cannot be read
	Whole    bool            // false if there is more than was read
}

// EarlierThread is the part of a thread that the client no longer sends.
type EarlierThread struct {
	Dialect string
	Events  []Event // messages that are not in the history, oldest first
}

// Earlier reads the messages before the resolution's history in the same scope: in the ancestors of its thread, and in other
// threads of its session that began before it. When ctx is done, Earlier returns the messages that it has read so far.
func (r *Registry) Earlier(ctx context.Context, res *Resolution) Earlier {
	e := earlierReader{
		Earlier: Earlier{Readable: true, Whole: true}, registry: r, store: r.store, history: res.query.History, seen: map[Hash]bool{},
		visited: map[ThreadID]bool{"": true, res.Thread.ID: true}, eventsLeft: maxEarlierEvents, bytesLeft: maxEarlierBytes,
	}
	for i := range e.history.Messages {
		e.seen[e.history.Messages[i].Digest] = true
	}
	branch, results, child := newestStep(e.history, res.Thread.ForkAt+1), resultsOf(e.history), &res.Thread
	for t := e.thread(ctx, child.Parent); t != nil; t = e.thread(ctx, t.Parent) {
		if child != &res.Thread {
			branch = e.eventsAfter(ctx, child.ID, child.ForkAt)
		}
		e.parted = e.parted || child.ForkAt > 0 && e.isAnotherRun(ctx, child, branch, e.eventsAfter(ctx, t.ID, child.ForkAt))
		if e.parted && child.ForkAt == 0 {
			break // the threads that it is linked to belong to the other run
		}
		results = e.read(ctx, t, results, child.ForkAt)
		child = t
	}
	if !res.Begins && (!e.parted || res.query.Scope.Key != "") {
		e.readSiblings(ctx, &res.Thread)
	}
	return e.Earlier
}

// earlierReader reads the events of threads.
type earlierReader struct {
	Earlier
	registry   *Registry
	store      Store
	history    *History
	seen       map[Hash]bool // digests of the messages in the history and of those that were read
	visited    map[ThreadID]bool
	parted     bool // the ancestor being read belongs to another run from the fork on
	eventsLeft int  // events that may still be read
	bytesLeft  int  // bytes of payloads that may still be read
}

// thread reads the record of a thread. It returns nil if the thread was visited before or cannot be read, or if maxEarlierThreads were read.
func (e *earlierReader) thread(ctx context.Context, id ThreadID) *Thread {
	if e.visited[id] || len(e.Threads) == maxEarlierThreads {
		return nil
	}
	e.visited[id] = true
	t, err := e.store.Thread(ctx, id)
	if err != nil {
		e.failed(err)
		return nil
	}
	return &t
}

// readSiblings reads the threads of own's session that began before own. Because several scopes may share a session, it reads only threads
// whose first chain hash shows that they belong to the history's scope.
func (e *earlierReader) readSiblings(ctx context.Context, own *Thread) {
	s, err := e.store.Session(ctx, own.Session)
	if err != nil {
		e.failed(err)
	}
	newest := s.Threads[max(len(s.Threads)-2*maxEarlierThreads, 0):]
	for _, id := range slices.Backward(newest) {
		t := e.thread(ctx, id)
		if t == nil {
			continue
		}
		conversation := t.Purpose == PurposeMain || t.Purpose == PurposeKept
		if t.Created.Before(own.Created) && t.ForkAt == 0 && conversation && e.inScope(ctx, t) {
			e.read(ctx, t, nil, 0)
		}
	}
}

// failed records that something could not be read, unless it no longer exists.
func (e *earlierReader) failed(err error) {
	if errors.Is(err, ErrUnreadable) {
		e.Readable = false
		return
	}
	e.Whole = e.Whole && errors.Is(err, ErrNotFound)
}

// resultsOf returns the tool results of a history by their positions.
func resultsOf(h *History) map[int]Result {
	results := map[int]Result{}
	for p := 1; p <= h.Len(); p++ {
		if h.Message(p).Kind == Observation {
			results[p] = resultAt(h, p)
		}
	}
	return results
}

// newestStep returns the messages of a history from position p to its next answer, as events.
func newestStep(h *History, p int) (events []Event) {
	for ; p <= h.Len(); p++ {
		m := h.Message(p)
		events = append(events, Event{Pos: p, Kind: m.Kind, Digest: m.Digest, Chain: h.Chain[p], Payload: m.Payload()})
		if m.Kind.ByModel() {
			break
		}
	}
	return events
}

// eventsAfter returns the next messages of a thread after a position, none if they cannot be read.
func (e *earlierReader) eventsAfter(ctx context.Context, id ThreadID, position int) []Event {
	events, err := e.registry.eventsAt(ctx, id, position+1)
	if err != nil {
		e.failed(err)
		return nil
	}
	return events
}

// isAnotherRun reports whether the branch that child begins with belongs to another run than the thread that it was forked from. It does if both continue after
// the fork with different tool results, and the branch's result is not the thread's result, shortened by the client. A shortened result
// is smaller, and no request that ended with it was answered.
func (e *earlierReader) isAnotherRun(ctx context.Context, child *Thread, branch, thread []Event) bool {
	if len(branch) == 0 || len(thread) == 0 {
		return true // they cannot be compared
	}
	own, other := &branch[0], &thread[0]
	if own.Kind != Observation || other.Kind != Observation || own.Digest == other.Digest {
		return false
	}
	next := slices.IndexFunc(branch, func(event Event) bool { return event.Kind.ByModel() })
	if next < 0 || len(own.Payload) >= len(other.Payload) {
		return true
	}
	places, err := e.registry.readTraces(ctx, []Hash{AnsweredTrace(branch[next-1].Chain)})
	if err != nil || places[0].Known() {
		return true
	}
	answered, err := e.registry.answeredAt(ctx, child, branch[next-1].Pos)
	return err != nil || answered
}

// read reads a thread from its end and returns its tool results by position. branch holds the results of the branch that was forked from
// the thread at forkAt; 0 means that it is only linked. If the branch has other results after the fork, it may be another run that began
// in the same way and got the same answers, so read leaves out the thread's messages after the fork.
func (e *earlierReader) read(ctx context.Context, t *Thread, branch map[int]Result, forkAt int) map[int]Result {
	var events []Event
	results, parted := map[int]Result{}, e.parted
	for last := t.Seq; last > 0 && e.open(); {
		page, err := e.store.Events(ctx, t.ID, last, -earlierPage)
		if !e.charge(page, err) || len(page) == 0 {
			break
		}
		for i := range page {
			if page[i].Kind != Observation {
				continue
			}
			r := resultOfEvent(&page[i])
			results[r.Pos] = r
			after, both := branch[r.Pos]
			parted = parted || both && forkAt > 0 && r.Pos > forkAt && after.Sum != r.Sum && after.Size >= r.Size
		}
		for part := range slices.Chunk(e.unseen(page), earlierPage) { // because an entry may contain many events
			events = append(events, e.content(ctx, part)...)
		}
		last = page[0].Seq - 1
	}
	slices.Reverse(events)
	if parted && forkAt > 0 {
		events = slices.DeleteFunc(events, func(event Event) bool { return event.Pos > forkAt })
	}
	e.Threads = append(e.Threads, EarlierThread{Dialect: t.Dialect, Events: events})
	return results
}

// open reports whether the bounds allow to read more. If not, it notes that the result is incomplete.
func (e *earlierReader) open() bool {
	e.Whole = e.Whole && e.eventsLeft > 0 && e.bytesLeft > 0
	return e.eventsLeft > 0 && e.bytesLeft > 0
}

// charge counts a page towards the bounds. It returns false if the page could not be read.
func (e *earlierReader) charge(page []Event, err error) bool {
	if err != nil {
		e.failed(err)
		return false
	}
	e.eventsLeft -= len(page)
	for i := range page {
		e.bytesLeft -= len(page[i].Payload)
		e.Readable = e.Readable && page[i].Kind != Unreadable
	}
	return true
}

// content reads the payloads of events whose content other entries store, counts them towards the bounds, and returns the events that
// have content.
func (e *earlierReader) content(ctx context.Context, events []Event) []Event {
	if e.bytesLeft <= 0 {
		e.Whole = false
		return nil
	}
	err := ReadContent(ctx, e.store, events, e.bytesLeft)
	if err != nil {
		e.failed(err)
	}
	return slices.DeleteFunc(events, func(event Event) bool {
		if event.Ref.Thread != "" {
			e.bytesLeft -= len(event.Payload)
		}
		e.Readable = e.Readable && (len(event.Payload) > 0 || errors.Is(err, ErrTooLarge))
		return len(event.Payload) == 0
	})
}

// unseen returns the messages among events that are neither in the history nor read already, newest first.
func (e *earlierReader) unseen(events []Event) (out []Event) {
	for _, event := range slices.Backward(events) {
		if event.Pos > 0 && !e.seen[event.Digest] {
			e.seen[event.Digest] = true
			out = append(out, event)
		}
	}
	return out
}

// inScope reports whether a thread that is not a fork belongs to the history's scope. The scope determines the first chain hash.
func (e *earlierReader) inScope(ctx context.Context, t *Thread) bool {
	for from := uint64(1); e.open(); { // system messages come before the first position
		page, err := e.store.Events(ctx, t.ID, from, firstEntries)
		if !e.charge(page, err) || len(page) == 0 {
			return false
		}
		if first := slices.IndexFunc(page, func(event Event) bool { return event.Pos > 0 }); first >= 0 {
			return page[first].Pos == 1 && page[first].Chain == Next(e.history.Chain[0], page[first].Digest)
		}
		from = page[len(page)-1].Seq + 1
	}
	return false
}
