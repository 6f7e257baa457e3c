package session

import (
	"context"
	"errors"
	"slices"
)

// Bounds of Earlier.
const (
	earlierThreads = 16 // that are read
	earlierEvents  = 4096
	earlierBytes   = 4 << 20   // but for the last page
	earlierPage    = 32        // events that are read at once, if they are small
	earlierFirst   = 8         // events that are read at first, of a thread of which nothing is known
	earlierSmall   = 128 << 10 // bytes of a page, up to which twice as many may be read
)

// Earlier is what a conversation said before the history that its client sends.
type Earlier struct {
	Threads []EarlierThread // the nearest first; those before a history stay the same, and so do their numbers
	Kept    bool            // false: the content of some event is not kept, or cannot be read
	Whole   bool            // false: there is more than what was read
}

// EarlierThread is what a thread said that the history does not hold, the oldest first.
type EarlierThread struct {
	Dialect string
	Events  []Event
}

// Earlier reads what was said before a resolution's history in the same scope: in the threads that it goes back to, and in others of its
// session that began before. It ends with ctx at the latest; what was read by then counts.
func (r *Registry) Earlier(ctx context.Context, res *Resolution) Earlier {
	e := reader{
		Earlier: Earlier{Kept: true, Whole: true}, store: r.store, history: res.query.History, seen: map[Hash]bool{},
		events: earlierEvents, bytes: earlierBytes,
	}
	for i := range e.history.Messages {
		e.seen[e.history.Messages[i].Digest] = true
	}
	known := map[ThreadID]bool{res.Thread.ID: true}
	for id := res.Thread.Parent; id != "" && !known[id] && len(e.Threads) < earlierThreads; {
		known[id] = true
		t, err := r.store.Thread(ctx, id)
		if err != nil {
			e.failed(err)
			break
		}
		e.read(ctx, &t, false)
		id = t.Parent
	}
	if res.Begins {
		return e.Earlier
	}
	s, err := r.store.Session(ctx, res.Thread.Session)
	if err != nil {
		e.failed(err)
	}
	for _, id := range slices.Backward(s.Threads[max(len(s.Threads)-2*earlierThreads, 0):]) {
		if known[id] || len(e.Threads) == earlierThreads {
			continue
		}
		t, err := r.store.Thread(ctx, id)
		if err != nil {
			e.failed(err)
		} else if t.Created.Before(res.Thread.Created) && t.ForkAt == 0 && (t.Purpose == PurposeMain || t.Purpose == PurposeKept) {
			e.read(ctx, &t, true)
		}
	}
	return e.Earlier
}

// reader reads the events of threads.
type reader struct {
	Earlier
	store         Store
	history       *History
	seen          map[Hash]bool // digests of messages that the history holds, or that were read
	events, bytes int           // that may still be read
}

// failed is when something could not be read. What is gone is not missed.
func (e *reader) failed(err error) {
	if errors.Is(err, ErrUnreadable) {
		e.Kept = false
		return
	}
	e.Whole = e.Whole && errors.Is(err, ErrNotFound)
}

// read reads a thread from its end. One that is strange has to prove that it is of the history's scope: several may share a session.
func (e *reader) read(ctx context.Context, t *Thread, strange bool) {
	if strange && !e.ours(ctx, t) {
		return
	}
	var said []Event
	size := uint64(earlierFirst)
	for to := t.Seq; to > 0; {
		from, before := max(to, size)-size+1, e.bytes
		page, read := e.page(ctx, t, from, to)
		if !read {
			break
		}
		for _, event := range slices.Backward(page) {
			if e.takes(&event) {
				said = append(said, event)
			}
		}
		if before-e.bytes <= earlierSmall {
			size = min(2*size, earlierPage)
		}
		to = from - 1
	}
	slices.Reverse(said)
	e.Threads = append(e.Threads, EarlierThread{Dialect: t.Dialect, Events: said})
}

// page reads events of a thread, if that is still allowed, and charges them.
func (e *reader) page(ctx context.Context, t *Thread, from, to uint64) (page []Event, read bool) {
	if e.events <= 0 || e.bytes <= 0 {
		e.Whole = false
		return nil, false
	}
	page, err := e.store.Events(ctx, t.ID, from, int(to-from+1)) //nolint:gosec // a page at most
	if err != nil {
		e.failed(err)
		return nil, false
	}
	e.events -= len(page)
	for i := range page {
		e.bytes -= len(page[i].Payload)
	}
	return page, true
}

// takes reports whether an event says something that is not known yet.
func (e *reader) takes(event *Event) bool {
	if event.Pos == 0 || e.seen[event.Digest] {
		return false
	}
	e.seen[event.Digest] = true
	e.Kept = e.Kept && len(event.Payload) > 0
	return len(event.Payload) > 0
}

// ours reports whether a thread that is no fork is of the history's scope, which seeds its first chain hash.
func (e *reader) ours(ctx context.Context, t *Thread) bool {
	for from := uint64(1); ; from += earlierFirst { // its system messages come first
		page, read := e.page(ctx, t, from, from+earlierFirst-1)
		if first := slices.IndexFunc(page, func(event Event) bool { return event.Pos == 1 }); first >= 0 {
			return page[first].Chain == next(e.history.Chain[0], page[first].Digest)
		}
		if !read || len(page) < earlierFirst {
			return false
		}
	}
}
