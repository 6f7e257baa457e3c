package records

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// versionOf returns a random version of a session's record.
func versionOf() string { return strconv.FormatUint(rand.Uint64()>>28+1, 36) } //nolint:gosec // no secret

// Append implements session.Store. It takes one round trip, another one to begin a fork, and occasionally another one to renew the lives of
// shared threads or to read a session that this process does not know. Where groups are kept in several places, the index entries take
// another one.
func (s *Store) Append(ctx context.Context, b session.Batch) error {
	if err := codec.CheckIDs(b.Thread.ID, b.Thread.Session); err != nil {
		return err
	}
	events := s.content.Events(b.Thread.ID, b.Events)
	if codec.Begins(b) {
		shared, err := s.sharedBy(ctx, b)
		if err == nil {
			err = s.announce(ctx, b)
		}
		if err != nil {
			return err
		}
		c := appending(b, events)
		begin(&c, b, shared)
		result, err := s.commitJoined(ctx, c, b)
		if err == nil && result.OK() {
			err = s.maintain(ctx, shared)
		}
		if err != nil || result.OK() {
			return err
		}
		if result.Applied || result.Failed > 0 {
			return s.refuse(ctx, b, &result)
		}
	}
	result, err := s.commitJoined(ctx, appending(b, events), b)
	switch {
	case err != nil:
		return err
	case !result.OK():
		return s.refuse(ctx, b, &result)
	}
	if !result.Renewed {
		return nil
	}
	return s.maintain(ctx, session.Parted[session.ThreadID](result.Fields["k"]))
}

// created returns what distinguishes a thread from another one with the same id.
func created(at time.Time) string { return fmt.Sprintf("%d.%d", at.Unix(), at.Nanosecond()) }

// appending returns the commit of a batch that continues a thread, without its session.
func appending(b session.Batch, encoded [][]byte) store.Commit {
	t := &b.Thread
	part := store.Part{
		Key: threadKey(t.ID), If: []store.Cond{is("l", strconv.Itoa(b.At)), is("b", created(t.Created))},
		Set: []store.Field{set("r", string(codec.Thread(*t))), set("l", strconv.Itoa(t.Len))},
		Add: []store.Count{{Name: "m", N: 1}},
	}
	events := store.Append{Log: logEvents}
	for _, e := range encoded {
		events.Entries = append(events.Entries, string(e))
	}
	part.Log = []store.Append{events}
	if left := leftHashes(b.Traces.Lasting); left != nil {
		part.Log = append(part.Log, store.Append{Log: logLeft, Entries: left})
	}
	c := store.Commit{Parts: []store.Part{part}, While: is("b", created(t.Created)), Return: []string{"k"}}
	for _, p := range b.Places {
		c.Entries = append(c.Entries, store.Entry{Key: placeKey(p.Hash), Value: string(codec.Place(p.Place))})
	}
	addTraces(&c, b.Traces, codec.Last(b))
	for _, h := range b.Passed {
		c.Drop = append(c.Drop, placeKey(h))
	}
	return c
}

// begin makes a commit begin its thread. It then needs the threads without which that would be incomplete.
func begin(c *store.Commit, b session.Batch, shared []session.ThreadID) {
	part := &c.Parts[0]
	c.Return = nil
	part.If, part.Clear = []store.Cond{is("l", "")}, true
	part.Set = append(part.Set, set("b", created(b.Thread.Created)))
	for name, value := range map[string]string{"c": string(codec.List(b.Thread.Listed())), "k": session.Joined(shared)} {
		if value != "" {
			part.Set = append(part.Set, set(name, value))
		}
	}
	if part.Log[len(part.Log)-1].Log != logLeft {
		part.Log = append(part.Log, store.Append{Log: logLeft, Entries: []string{""}}) // a Cluster that moves a slot wants all keys to exist
	}
	for i, id := range needed(b) {
		conds := []store.Cond{there()}
		if i == 0 && forks(b) && !b.ParentCreated.IsZero() {
			conds = append(conds, is("b", created(b.ParentCreated)))
		}
		c.Parts = append(c.Parts, store.Part{Key: threadKey(id), If: conds, Guards: true})
	}
}

// commitJoined commits a batch together with its session. If that has changed, it reads it and tries again.
func (s *Store) commitJoined(ctx context.Context, c store.Commit, b session.Batch) (store.Result, error) {
	id, own := b.Thread.Session, c.Parts
	if id == "" {
		return s.store.Commit(ctx, c)
	}
	j, read := s.sessions.Get(id)
	if !read && c.Parts[0].Clear {
		j, read = joined{Session: session.Session{ID: id}}, true // probably a new session
	}
	applied := store.Result{}
	for range maxTries {
		if !read {
			var err error
			if j, err = s.readJoined(ctx, id); err != nil {
				return applied, err
			}
		}
		read = false
		part, next := j.join(b)
		try := c
		if try.Parts = slices.Concat(own, []store.Part{part}); applied.Applied {
			try = store.Commit{Parts: []store.Part{part}}
		}
		result, err := s.store.Commit(ctx, try)
		if applied.Applied && err == nil && result.OK() {
			result, applied.Failed = applied, -1
			result.Failed = -1
		}
		switch {
		case err != nil || !result.OK() && result.Failed < len(own) && !applied.Applied:
			return result, err
		case result.OK():
			s.sessions.Add(id, next)
			s.trim(ctx, next, part)
			return result, nil
		case !applied.Applied:
			applied = result
		}
		s.sessions.Remove(id)
	}
	return applied, errBusy
}

// maintain renews the lives of the threads whose logs a thread shares, after that of the thread was renewed.
func (s *Store) maintain(ctx context.Context, ids []session.ThreadID) error {
	if len(ids) == 0 {
		return nil
	}
	var parts []store.Part
	for _, id := range ids {
		parts = append(parts, store.Part{Key: threadKey(id), Renew: store.Now})
	}
	_, err := s.store.Commit(ctx, store.Commit{Parts: parts})
	return err
}

// refuse returns ErrStale for a batch that does not fit. If it has begun a thread that would be incomplete, refuse deletes that again.
func (s *Store) refuse(ctx context.Context, b session.Batch, result *store.Result) error {
	if result.Applied && result.Failed > 0 {
		part := store.Part{Key: threadKey(b.Thread.ID), If: []store.Cond{is("b", created(b.Thread.Created))}, Clear: true, Unlock: true}
		if _, err := s.store.Commit(ctx, store.Commit{Parts: []store.Part{part}}); err != nil {
			return err
		}
	}
	if id := b.Thread.Session; id != "" && s.store.Late() > 0 {
		if err := s.tidy(ctx, id); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: the thread is not at %d, or a thread that it needs is gone", session.ErrStale, b.At)
}

// announce adds a thread that is about to begin to its session, so that deleting the session finds all of it, if the two are not written at once.
func (s *Store) announce(ctx context.Context, b session.Batch) error {
	j, _ := s.sessions.Get(b.Thread.Session)
	if s.store.Late() == 0 || b.Thread.Session == "" || slices.Contains(j.Threads, b.Thread.ID) {
		return nil
	}
	_, err := s.store.Commit(ctx, store.Commit{Parts: []store.Part{{
		Key: sessionKey(b.Thread.Session), Log: []store.Append{{Log: logThreads, Entries: []string{string(b.Thread.ID)}}},
	}}})
	return err
}
