package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// A client that edits an early message or leaves the oldest ones out at each step begins a thread with each request. Such a thread
// logs the content of new messages only. For the others it names the entries that hold it already, in threads that its session has.

const (
	maxShares    = 16      // threads in which one thread's content is held
	minHeld      = 2 << 10 // bytes of content for which it is worth reading the log of another thread
	minHeldEntry = 64      // bytes of content that the name of an entry replaces, unless it follows the one before
	heldIndexed  = 32      // newest positions that are indexed even if their content is held elsewhere
)

// share names entries that hold the content of b's events in the log of the thread that b's thread goes on from, or in one of those
// that this one names. If these threads become too many, the ones that hold least are not shared any more, so that each message is
// logged a few times at most. Of the messages whose content is held it indexes the newest ones only: the others are found in the
// threads before. What cannot be read is logged again.
func (r *Registry) share(ctx context.Context, b *Batch, h *History) {
	t := &b.Thread
	size := 0
	for i := range b.Events {
		size += len(b.Events[i].Payload)
	}
	id := cmp.Or(t.Follows, t.Parent)
	if id == "" || size < minHeld {
		return
	}
	before, err := r.store.Thread(ctx, id)
	if err != nil || before.Session != t.Session || before.Dialect != t.Dialect {
		return
	}
	held, digests, sealed := map[Hash]EntryID{}, map[EntryID]Hash{}, map[EntryID]bool{}
	for page, err := range newestPages(ctx, r.store, &before) {
		if err != nil {
			break
		}
		for _, e := range page {
			if e.Held.Thread != "" {
				held[e.Digest], digests[e.Held] = e.Held, e.Digest
				sealed[e.Held] = e.Encrypted && r.store.Encrypts()
			}
		}
	}
	names := nameContent(b.Events, held, digests)
	for i := range names {
		names[i].Encrypted = sealed[names[i].Held] // a forged name does not open what is encrypted
	}
	old := map[int]bool{}
	for from := 0; from < len(names); from += logPage {
		page := names[from:min(from+logPage, len(names))]
		if ReadContent(ctx, r.store, page) != nil {
			break
		}
		for i, name := range page {
			e := &b.Events[from+i]
			if len(name.Payload) == 0 {
				continue
			}
			e.Held, e.Payload, page[i].Payload = name.Held, nil, nil
			old[e.Pos] = e.Pos <= t.Len-heldIndexed
			if !slices.Contains(t.Shares, name.Held.Thread) {
				t.Shares = append(t.Shares, name.Held.Thread)
			}
		}
	}
	b.Places = slices.DeleteFunc(b.Places, func(p IndexEntry) bool { return old[p.Place.Pos] })
}

// nameContent returns, for each of events, an event that names the entry which holds its content, or none.
func nameContent(events []Event, held map[Hash]EntryID, digests map[EntryID]Hash) []Event {
	names, ids := make([]Event, len(events)), shares(events, held)
	var last EntryID
	for i := range events {
		e := &events[i]
		in := EntryID{Thread: last.Thread, Seq: last.Seq + 1} // the events share an entry, also if others have the same message
		follows := digests[in] == e.Digest
		if !follows {
			in = held[e.Digest]
		}
		last = EntryID{}
		if (follows || len(e.Payload) >= minHeldEntry) && slices.Contains(ids, in.Thread) {
			names[i], last = Event{Digest: e.Digest, Held: in}, in
		}
	}
	return names
}

// shares returns the threads that hold content of events. If there are too many, it returns the half of them that hold most.
func shares(events []Event, held map[Hash]EntryID) []ThreadID {
	count := map[ThreadID]int{}
	for i := range events {
		if in := held[events[i].Digest]; len(events[i].Payload) >= minHeldEntry && in.Thread != "" {
			count[in.Thread]++
		}
	}
	ids := slices.SortedFunc(maps.Keys(count), func(a, b ThreadID) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) })
	if len(ids) > maxShares {
		ids = ids[:maxShares/2]
	}
	return ids
}

// ReadContent sets the payloads of events that other threads' entries hold. A payload stays empty if the store does not have it any
// more, or if it is encrypted and its name is not.
func ReadContent(ctx context.Context, store Store, events []Event) error {
	wanted := map[ThreadID][]uint64{}
	for i := range events {
		if e := &events[i]; e.Held.Thread != "" {
			wanted[e.Held.Thread] = append(wanted[e.Held.Thread], e.Held.Seq)
		}
	}
	for id, entries := range wanted {
		slices.Sort(entries)
		content := map[uint64]Event{}
		for _, seq := range entries {
			if _, read := content[seq]; read {
				continue
			}
			last, _ := slices.BinarySearch(entries, seq+logPage)
			page, err := store.Events(ctx, id, seq, int(entries[last-1]-seq+1)) //nolint:gosec // at most logPage
			if err != nil && !errors.Is(err, ErrNotFound) {
				return fmt.Errorf("read content: %w", err)
			}
			for _, e := range page {
				if _, needed := slices.BinarySearch(entries, e.Seq); needed {
					content[e.Seq] = e
				}
			}
		}
		for i := range events {
			e := &events[i]
			held := content[e.Held.Seq]
			// A name in clear may be forged, so it does not open what is encrypted.
			if e.Held.Thread == id && held.Digest == e.Digest && (e.Encrypted || !held.Encrypted) {
				e.Payload = held.Payload
			}
		}
	}
	return nil
}

// ReadLog returns a thread's whole log with its content, in pages.
func ReadLog(ctx context.Context, store Store, id ThreadID) iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) {
		for from := uint64(1); ; {
			page, err := store.Events(ctx, id, from, maxLogEntries)
			if err != nil {
				yield(nil, err)
			}
			if len(page) == 0 {
				return
			}
			for part := range slices.Chunk(page, logPage) { // an entry may have several events
				if err := ReadContent(ctx, store, part); !yield(part, err) || err != nil {
					return
				}
			}
			from = page[len(page)-1].Seq + 1
		}
	}
}

// Bounds of what is read of logs, from their ends.
const (
	maxLogEntries = 1024    // each of which may have many events that others hold
	maxLogBytes   = 4 << 20 // of payloads; the last page may exceed it
	maxLogThreads = 16      // a thread and those that it was forked from
	logPage       = 64      // entries in a page
)

// newestPages returns the logged history of a thread in pages of log entries, newest first, up to the bounds: its own log, and those
// of the threads that it was forked from, without what they logged after that. Instead of their payloads the events have Held, also if
// it is their own entry that holds them.
func newestPages(ctx context.Context, store Store, t *Thread) iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) {
		entries, size, threads := 0, 0, 1
		at, end, last := *t, t.Len, t.Seq
		for entries < maxLogEntries && size < maxLogBytes {
			var page []Event
			var err error
			if last > 0 {
				page, err = store.Events(ctx, at.ID, last, -logPage)
			}
			if err == nil && len(page) == 0 {
				if threads++; at.ForkAt == 0 || at.Parent == "" || threads > maxLogThreads {
					return
				}
				end = min(end, at.ForkAt)
				if at, err = store.Thread(ctx, at.Parent); err == nil {
					last = at.Seq
					continue
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			entries += int(last - page[0].Seq + 1) //nolint:gosec // not many are missing
			last = page[0].Seq - 1
			for i := range page {
				e := &page[i]
				if size += len(e.Payload); len(e.Payload) > 0 {
					e.Held, e.Payload = EntryID{Thread: at.ID, Seq: e.Seq}, nil
				}
			}
			page = slices.DeleteFunc(page, func(e Event) bool { return e.Pos > end })
			if !yield(page, nil) {
				return
			}
		}
	}
}
