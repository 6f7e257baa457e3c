package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// KeepItems logs the items of the answer to the resolution's history. The client's next request will refer to them by id, and another
// replica may serve it. If the thread has moved on, KeepItems logs nothing.
func (r *Registry) KeepItems(ctx context.Context, res *Resolution, items []byte) error {
	if n := res.query.History.Len(); n == 0 || n != res.Thread.Len {
		return nil
	}
	b := Batch{Thread: res.Thread, Key: res.query.Scope.Key, At: res.Thread.Len}
	b.Thread.Seen = time.Now()
	b.Events = []Event{{Kind: Answered, Time: b.Thread.Seen, Payload: items}}
	if err := r.store.Append(ctx, b); err != nil && !errors.Is(err, ErrStale) {
		return fmt.Errorf("log items of an answer: %w", err)
	}
	return nil
}

// newestEntries is how many log entries NewestItems reads. It is more than one because a condensation may have been logged after the answer.
const newestEntries = 4

// NewestItems returns the items that KeepItems logged among the newest entries of the resolution's thread.
func (r *Registry) NewestItems(ctx context.Context, res *Resolution) (payloads [][]byte, err error) {
	events, err := r.store.Events(ctx, res.Thread.ID, res.Thread.Seq, -newestEntries)
	if err != nil {
		return nil, fmt.Errorf("read items: %w", err)
	}
	for i := range events {
		if events[i].Kind == Answered {
			payloads = append(payloads, events[i].Payload)
		}
	}
	return payloads, nil
}

// Logged is what the log has of a thread's messages, oldest first.
type Logged struct {
	Events []Event // with payloads; the system messages in force are among them, in the places where they were sent
	Whole  bool    // no message is missing
}

// Bounds of what Logged reads.
const (
	maxLoggedEntries = 1 << 14
	maxLoggedBytes   = 16 << 20
)

// Logged returns the logged messages of a resolved thread, up to 16 MiB of the newest. It leaves out messages whose content is no longer stored,
// and system messages that apply to one request.
func (r *Registry) Logged(ctx context.Context, res *Resolution) (l Logged, err error) {
	left := maxLoggedBytes
	for page, err := range pagesWithin(ctx, r.store, &res.Thread, bounds{maxLoggedEntries, maxLoggedBytes, true}) {
		if errors.Is(err, ErrNotFound) {
			break
		}
		if err != nil {
			return l, fmt.Errorf("read logged messages: %w", err)
		}
		page = slices.DeleteFunc(page, func(e Event) bool { return e.Pos == 0 && e.Kind != System })
		for i := range page {
			left -= len(page[i].Payload)
		}
		err := ReadContent(ctx, r.store, page, max(left, 1))
		if err != nil && !errors.Is(err, ErrTooLarge) {
			return l, err
		}
		l.Events = slices.Concat(slices.DeleteFunc(page, func(e Event) bool { return len(e.Payload) == 0 }), l.Events)
		if err != nil || left <= 0 {
			break
		}
	}
	l.Whole = l.systemKnown(&res.Thread)
	l.order()
	messages := 0
	for i := range l.Events {
		if l.Events[i].Pos > 0 {
			messages++
		}
	}
	l.Whole = l.Whole && messages == res.Thread.Len && messages > 0
	return l, nil
}

// systemKnown reports whether the system messages in force are those of the thread's newest request, unless upstream keeps its history.
func (l *Logged) systemKnown(t *Thread) bool {
	if t.Purpose == PurposeKept {
		return true
	}
	alone, system := SystemInForce(l.Events)
	var digests []Hash
	for _, e := range slices.Concat(alone, system) {
		digests = append(digests, e.Digest)
	}
	return SystemDigest(digests) == t.System
}

// order puts the system messages that are in force where they were sent, and removes the others.
func (l *Logged) order() {
	_, system := SystemInForce(l.Events)
	var ordered []Event
	for _, e := range l.Events {
		if e.Pos == 0 {
			continue
		}
		for len(system) > 0 && system[0].After < e.Pos {
			ordered, system = append(ordered, system[0]), system[1:]
		}
		ordered = append(ordered, e)
	}
	l.Events = append(ordered, system...)
}

// SystemInForce returns the system messages that belong to a history which upstream keeps, from the events of its log, oldest first. The newest
// ones that stand apart are returned on their own, since they apply to one request. Those of a request that brought its whole history replace
// the ones before. Those sent while upstream keeps the history are added to it.
func SystemInForce(events []Event) (alone, system []Event) {
	for i, e := range events {
		if e.Kind != System {
			continue
		}
		if begins := i == 0 || events[i-1].Kind != System || !events[i-1].Time.Equal(e.Time); e.Chain.IsZero() && begins {
			alone, system = nil, nil
		}
		if e.After == apart {
			alone = []Event{e}
		} else {
			system = append(system, e)
		}
	}
	return alone, system
}

// References returns the logged payloads that resolve a history's references to items of earlier answers, newest page first: those of
// the messages with references, and what KeepItems logged. It reads only the newest entries (see maxLogEntries).
func (r *Registry) References(ctx context.Context, res *Resolution) (payloads [][]byte, err error) {
	h, missing := res.query.History, 0
	for i := range h.Messages {
		if len(h.Messages[i].Refers) > 0 {
			missing++
		}
	}
	var found []Event
	for page, err := range newestPages(ctx, r.store, &res.Thread) {
		if err != nil {
			return nil, fmt.Errorf("read references: %w", err)
		}
		for _, e := range page {
			refers := e.Pos > 0 && h.Covers(e.Pos, e.Chain) && len(h.Message(e.Pos).Refers) > 0
			if refers {
				missing--
			}
			if refers || e.Kind == Answered {
				found = append(found, e)
			}
		}
		if missing <= 0 {
			break
		}
	}
	if err := ReadContent(ctx, r.store, found, maxLogBytes); err != nil && !errors.Is(err, ErrTooLarge) {
		return nil, err
	}
	for i := range found {
		payloads = append(payloads, found[i].Payload)
	}
	return payloads, nil
}
