package records

import (
	"context"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// forks reports whether b may begin a fork, which needs its parent.
func forks(b session.Batch) bool { return b.At > 0 && b.At == b.Thread.ForkAt && b.Thread.Parent != "" }

// needed returns the threads without which b's thread would be incomplete if b begins it: the parent of a fork, which comes first, and
// those that store its content.
func needed(b session.Batch) (ids []session.ThreadID) {
	if forks(b) {
		ids = append(ids, b.Thread.Parent)
	}
	if codec.Begins(b) {
		ids = appendShared(ids, b.Thread.ID, b.Thread.Shares...)
	}
	return ids
}

// sharedBy returns the threads whose events or summaries b's thread needs if b begins it: the parent of a fork, all threads
// that the parent shares, those that store its content, and the makers of the condensations that it inherits. If the parent of a fork is
// gone, sharedBy returns ErrStale, because the fork would be incomplete.
func (s *Store) sharedBy(ctx context.Context, b session.Batch) ([]session.ThreadID, error) {
	t := b.Thread
	var ids []session.ThreadID
	if t.ForkAt > 0 && t.Parent != "" {
		ids = append(ids, t.Parent)
	}
	ids = appendShared(ids, t.ID, t.Shares...)
	for _, c := range t.Listed() {
		ids = appendShared(ids, t.ID, c.ID.Thread)
	}
	if !forks(b) {
		return ids, nil
	}
	parent, err := s.one(ctx, threadKey(t.Parent), "k", "b")
	if err != nil {
		return nil, err
	}
	if !parent.Exists() || !b.ParentCreated.IsZero() && parent.Fields["b"] != created(b.ParentCreated) {
		return nil, fmt.Errorf("%w: the fork needs thread %s, which is gone", session.ErrStale, t.Parent)
	}
	return appendShared(ids, t.ID, session.Parted[session.ThreadID](parent.Fields["k"])...), nil
}

// appendShared appends those of more that are not in ids yet and are not the thread itself.
func appendShared(ids []session.ThreadID, self session.ThreadID, more ...session.ThreadID) []session.ThreadID {
	for _, id := range more {
		if id != self && id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
