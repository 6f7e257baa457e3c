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
	maxEarlierBytes   = 4 << 20 // of payloads; the last page may exceed it

	firstPage = 8         // events in the first page of a thread, whose size is unknown
	largePage = 32        // events in a page at most
	smallSize = 128 << 10 // bytes of a page up to which the next one may have twice as many events
)

// Earlier is the part of a conversation before the history that its client sends.
type Earlier struct {
	Threads []EarlierThread // nearest first; as the conversation goes on, the order and the numbers stay the same
	Kept    bool            // false if the content of some event was not kept or cannot be read
	Whole   bool            // false if there is more
}

// EarlierThread holds the events of a thread that are not in the history, oldest first.
type EarlierThread struct {
	Dialect string
	Events  []Event
}

// Earlier reads the messages before the resolution's history in the same scope: in the ancestors of its thread, and in other
// threads of its session that began before it. When ctx is done, Earlier returns the messages that it has read so far.
func (r *Registry) Earlier(ctx context.Context, res *Resolution) Earlier {
	e := earlierReader{
		Earlier: Earlier{Kept: true, Whole: true}, store: r.store, history: res.query.History, seen: map[Hash]bool{},
		eventsLeft: maxEarlierEvents, bytesLeft: maxEarlierBytes,
	}
	for i := range e.history.Messages {
		e.seen[e.history.Messages[i].Digest] = true
	}
	visited := map[ThreadID]bool{res.Thread.ID: true}
	e.readAncestors(ctx, res.Thread.Parent, visited)
	if !res.Begins {
		e.readSiblings(ctx, &res.Thread, visited)
	}
	return e.Earlier
}

// earlierReader reads the events of threads.
type earlierReader struct {
	Earlier
	store      Store
	history    *History
	seen       map[Hash]bool // digests of the messages in the history and of those that were read
	eventsLeft int           // events that may still be read
	bytesLeft  int           // bytes of payloads that may still be read
}

func (e *earlierReader) readAncestors(ctx context.Context, id ThreadID, visited map[ThreadID]bool) {
	for id != "" && !visited[id] && len(e.Threads) < maxEarlierThreads {
		visited[id] = true
		t, err := e.store.Thread(ctx, id)
		if err != nil {
			e.failed(err)
			return
		}
		e.read(ctx, &t)
		id = t.Parent
	}
}

// readSiblings reads the threads of own's session that began before own. Several scopes may share a session, so a thread
// must prove that it belongs to the history's scope.
func (e *earlierReader) readSiblings(ctx context.Context, own *Thread, visited map[ThreadID]bool) {
	s, err := e.store.Session(ctx, own.Session)
	if err != nil {
		e.failed(err)
	}
	newest := s.Threads[max(len(s.Threads)-2*maxEarlierThreads, 0):]
	for _, id := range slices.Backward(newest) {
		if visited[id] || len(e.Threads) == maxEarlierThreads {
			continue
		}
		t, err := e.store.Thread(ctx, id)
		if err != nil {
			e.failed(err)
			continue
		}
		conversation := t.Purpose == PurposeMain || t.Purpose == PurposeKept
		if t.Created.Before(own.Created) && t.ForkAt == 0 && conversation && e.inScope(ctx, &t) {
			e.read(ctx, &t)
		}
	}
}

// failed records that something could not be read, unless it no longer exists.
func (e *earlierReader) failed(err error) {
	if errors.Is(err, ErrUnreadable) {
		e.Kept = false
		return
	}
	e.Whole = e.Whole && errors.Is(err, ErrNotFound)
}

// read reads a thread from its end.
func (e *earlierReader) read(ctx context.Context, t *Thread) {
	var events []Event
	size := uint64(firstPage)
	for to := t.Seq; to > 0; {
		from, before := max(to, size)-size+1, e.bytesLeft
		page, ok := e.page(ctx, t, from, to)
		if !ok {
			break
		}
		for part := range slices.Chunk(e.unseen(page), largePage) { // an entry may have many events
			events = append(events, e.content(ctx, part)...)
		}
		if before-e.bytesLeft <= smallSize {
			size = min(2*size, largePage)
		}
		to = from - 1
	}
	slices.Reverse(events)
	e.Threads = append(e.Threads, EarlierThread{Dialect: t.Dialect, Events: events})
}

// page reads the events from to to of a thread and charges them to the bounds. It returns false if the bounds are reached
// or the events cannot be read.
func (e *earlierReader) page(ctx context.Context, t *Thread, from, to uint64) (page []Event, ok bool) {
	if e.eventsLeft <= 0 || e.bytesLeft <= 0 {
		e.Whole = false
		return nil, false
	}
	page, err := e.store.Events(ctx, t.ID, from, int(to-from+1)) //nolint:gosec // at most largePage
	if err != nil {
		e.failed(err)
		return nil, false
	}
	e.eventsLeft -= len(page)
	for i := range page {
		e.bytesLeft -= len(page[i].Payload)
		e.Kept = e.Kept && page[i].Kind != Unreadable
	}
	return page, true
}

// content reads what other threads hold of events' content, and charges it to the bounds. It returns the events that have content.
func (e *earlierReader) content(ctx context.Context, events []Event) []Event {
	if e.bytesLeft <= 0 {
		e.Whole = false
		return nil
	}
	if err := ReadContent(ctx, e.store, events); err != nil {
		e.failed(err)
	}
	return slices.DeleteFunc(events, func(event Event) bool {
		if event.Held.Thread != "" {
			e.bytesLeft -= len(event.Payload)
		}
		e.Kept = e.Kept && len(event.Payload) > 0
		return len(event.Payload) == 0
	})
}

// unseen returns those messages among events that were not seen yet, newest first.
func (e *earlierReader) unseen(events []Event) (out []Event) {
	for _, event := range slices.Backward(events) {
		if event.Pos > 0 && !e.seen[event.Digest] {
			e.seen[event.Digest] = true
			out = append(out, event)
		}
	}
	return out
}

// inScope reports whether a thread that is not a fork belongs to the history's scope, which seeds its first chain hash.
func (e *earlierReader) inScope(ctx context.Context, t *Thread) bool {
	for from := uint64(1); ; from += firstPage { // system messages come before the first position
		page, ok := e.page(ctx, t, from, from+firstPage-1)
		if first := slices.IndexFunc(page, func(event Event) bool { return event.Pos == 1 }); first >= 0 {
			return page[first].Chain == Next(e.history.Chain[0], page[first].Digest)
		}
		if !ok || len(page) < firstPage {
			return false
		}
	}
}
