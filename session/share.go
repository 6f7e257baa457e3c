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

// A client that edits an early message or leaves the oldest ones out at each step begins a thread with each request. To store each
// message about once, such a thread logs the content of new messages only. For the others, its log refers to the entries of other threads
// of its session that store the content already (Event.Ref).

const (
	maxShares      = 16      // threads that one thread may refer to
	minShared      = 2 << 10 // bytes of content for which it is worth reading the log of another thread
	minSharedEntry = 64      // bytes of content that are replaced by a reference, unless it continues the reference of the event before
	sharedIndexed  = 32      // newest positions that are indexed even if another thread stores their content
)

// share replaces the payloads of b's events by references to entries that store the same content: entries in the log of the predecessor of
// b's thread, or in the logs that this one refers to. If these are too many threads, it refers only to those that store most of the content,
// so that each message is still logged only a few times. Of the messages with a reference, only the newest are indexed, because the index of
// the earlier threads has the others. Content that cannot be read is logged again.
func (r *Registry) share(ctx context.Context, b *Batch, h *History) {
	t := &b.Thread
	size := 0
	for i := range b.Events {
		size += len(b.Events[i].Payload)
	}
	id := cmp.Or(t.Follows, t.Parent)
	if id == "" || size < minShared {
		return
	}
	before, err := r.store.Thread(ctx, id)
	if err != nil || before.Session != t.Session || before.Dialect != t.Dialect {
		return
	}
	stored, named := map[Hash]EntryID{}, map[EntryID]Event{}
	for page, err := range newestPages(ctx, r.store, &before) {
		if err != nil {
			break
		}
		for _, e := range page {
			if e.Ref.Thread != "" {
				sealed := e.Encrypted && r.store.Encrypts() // a reference in clear may be forged, so it must not lead to encrypted content
				stored[e.Digest], named[e.Ref] = e.Ref, Event{Digest: e.Digest, Ref: e.Ref, Encrypted: sealed}
			}
		}
	}
	refs := refsFor(b.Events, stored, named)
	old, left := map[int]bool{}, 2*size+maxLogBytes // the stored form of a message may be longer than the one just sent
	_ = eachRef(ctx, r.store, refs, func(i int, payload []byte) bool {
		e := &b.Events[i]
		e.Ref, e.Payload = refs[i].Ref, nil
		old[e.Pos] = e.Pos <= t.Len-sharedIndexed
		if !slices.Contains(t.Shares, e.Ref.Thread) {
			t.Shares = append(t.Shares, e.Ref.Thread)
		}
		left -= len(payload)
		return left > 0
	})
	b.Places = slices.DeleteFunc(b.Places, func(p IndexEntry) bool { return old[p.Place.Pos] })
}

// refsFor returns an event for each of events. Its Ref refers to the entry that stores the event's content, and is zero if there is
// none or a reference is not worthwhile. stored maps digests to entries, named maps entries to what is known of them.
func refsFor(events []Event, stored map[Hash]EntryID, named map[EntryID]Event) []Event {
	refs, ids := make([]Event, len(events)), shares(events, stored)
	var last EntryID
	for i := range events {
		e := &events[i]
		in := EntryID{Thread: last.Thread, Seq: last.Seq + 1} // preferred, because references to successive entries share a log entry
		follows := named[in].Digest == e.Digest
		if !follows {
			in = stored[e.Digest]
		}
		last = EntryID{}
		if (follows || len(e.Payload) >= minSharedEntry) && slices.Contains(ids, in.Thread) {
			refs[i], last = Event{Digest: e.Digest, Ref: in, Encrypted: named[in].Encrypted}, in
		}
	}
	return refs
}

// shares returns the threads that store content of events, those with most events first. If there are more than maxShares, it returns the
// first maxShares/2.
func shares(events []Event, stored map[Hash]EntryID) []ThreadID {
	count := map[ThreadID]int{}
	for i := range events {
		if in := stored[events[i].Digest]; len(events[i].Payload) >= minSharedEntry && in.Thread != "" {
			count[in.Thread]++
		}
	}
	ids := slices.SortedFunc(maps.Keys(count), func(a, b ThreadID) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) })
	if len(ids) > maxShares {
		ids = ids[:maxShares/2]
	}
	return ids
}

// ErrTooLarge means that there is more content than the caller allows to read.
var ErrTooLarge = errors.New("too much content")

// ReadContent sets the payloads of events whose content other entries store (Event.Ref), newest entries first. When the payloads reach
// maxBytes, it stops and returns ErrTooLarge. A payload stays empty if the store no longer has it, or if it is encrypted but the reference
// to it is not.
func ReadContent(ctx context.Context, store Store, events []Event, maxBytes int) error {
	err := eachRef(ctx, store, events, func(i int, payload []byte) bool {
		events[i].Payload = payload
		maxBytes -= len(payload)
		return maxBytes > 0
	})
	if err == nil && maxBytes <= 0 {
		err = ErrTooLarge
	}
	return err
}

// eachRef reads the payloads of events whose content other entries store, the newest entry of each thread first. It calls use with the
// index of the event until use returns false.
func eachRef(ctx context.Context, store Store, events []Event, use func(i int, payload []byte) bool) error {
	wanted := map[EntryID][]int{}
	for i := range events {
		if ref := events[i].Ref; ref.Thread != "" {
			wanted[ref] = append(wanted[ref], i)
		}
	}
	ids := slices.SortedFunc(maps.Keys(wanted), func(a, b EntryID) int {
		return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(b.Seq, a.Seq))
	})
	for len(ids) > 0 {
		newest, oldest := ids[0], ids[0].Seq
		for _, id := range ids[:min(len(ids), logPage)] {
			if id.Thread == newest.Thread && newest.Seq-id.Seq < logPage {
				oldest = id.Seq
			}
		}
		page, err := store.Events(ctx, newest.Thread, newest.Seq, -int(newest.Seq-oldest+1)) //nolint:gosec // at most logPage
		if err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("read content: %w", err)
		}
		for _, entry := range slices.Backward(page) {
			for _, i := range wanted[EntryID{Thread: newest.Thread, Seq: entry.Seq}] {
				// A reference in clear may be forged, so it must not lead to encrypted content.
				opens := entry.Digest == events[i].Digest && (events[i].Encrypted || !entry.Encrypted)
				if opens && len(entry.Payload) > 0 && !use(i, entry.Payload) {
					return nil
				}
			}
			oldest = entry.Seq // a page of large entries ends early
		}
		for len(ids) > 0 && ids[0].Thread == newest.Thread && ids[0].Seq >= oldest {
			ids = ids[1:]
		}
	}
	return nil
}

// ReadLog returns a thread's whole log with its content, in pages. If that is more than maxBytes, it ends with ErrTooLarge.
func ReadLog(ctx context.Context, store Store, id ThreadID, maxBytes int) iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) {
		for from := uint64(1); ; {
			page, err := store.Events(ctx, id, from, 4*logPage)
			if err == nil && len(page) == 0 {
				return
			}
			if err == nil {
				err = ReadContent(ctx, store, page, maxBytes)
			}
			for i := range page {
				maxBytes -= len(page[i].Payload)
			}
			if err == nil && maxBytes <= 0 {
				err = ErrTooLarge
			}
			if !yield(page, err) || err != nil {
				return
			}
			from = page[len(page)-1].Seq + 1
		}
	}
}

// Bounds of what is read of logs, from their ends.
const (
	maxLogEntries = 1024    // each may contain many references
	maxLogBytes   = 4 << 20 // total size of payloads; 16 times as much for the newest logPage entries. The last page may exceed it
	maxLogThreads = 16      // the thread and its ancestors
	logPage       = 64      // entries in a page
)

// newestPages iterates over the logged history of a thread in pages of log entries, newest page first, up to the bounds above. After the
// thread's own log come those of the threads that it was forked from, without what they logged after the fork. The events have no
// payloads: Ref refers to the entry that stores the payload, which may be the event's own.
func newestPages(ctx context.Context, store Store, t *Thread) iter.Seq2[[]Event, error] {
	return pagesWithin(ctx, store, t, bounds{maxLogEntries, maxLogBytes, false})
}

// bounds limits what is read of a log.
type bounds struct {
	entries, bytes int
	payloads       bool // the events have their payloads, except for those that other entries store
}

// pagesWithin is newestPages with other bounds.
func pagesWithin(ctx context.Context, store Store, t *Thread, b bounds) iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) {
		entries, size, threads := 0, 0, 1
		at, end, last := *t, t.Len, t.Seq
		beyond := false // events at hand may have been logged after the fork
		for entries < b.entries && (size < b.bytes || entries < logPage && size < 16*b.bytes) {
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
					last, beyond = at.Seq, true
					continue
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			entries += int(last - page[0].Seq + 1) //nolint:gosec // a log is far shorter than an int
			last = page[0].Seq - 1
			for i := range page {
				e := &page[i]
				if size += len(e.Payload); len(e.Payload) > 0 && !b.payloads {
					e.Ref, e.Payload = EntryID{Thread: at.ID, Seq: e.Seq}, nil
				}
			}
			page, beyond = upTo(page, end, beyond)
			if !yield(page, nil) {
				return
			}
		}
	}
}

// upTo returns the events of a page without messages after position end, and without system messages that were logged after it. These may be
// among the newest events of a parent's log, as long as beyond is set.
func upTo(page []Event, end int, beyond bool) (kept []Event, stillBeyond bool) {
	for i := len(page) - 1; i >= 0; i-- {
		e := &page[i]
		beyond = beyond && (e.Pos == 0 || e.Pos > end)
		if e.Pos <= end && !(beyond && e.Kind == System) {
			kept = append(kept, *e)
		}
	}
	slices.Reverse(kept)
	return kept, beyond
}
