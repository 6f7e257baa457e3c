package records

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// maxInRecord is how many threads the record of a session names itself, so that most sessions need no log of them.
const maxInRecord = 16

// The logs of a session. That of its threads has those for which the record has no room. It may name a thread more than once, and one that never
// began or has expired.
const (
	logThreads = 'u'
	logJournal = 'j'
)

// joined is a session's record as it was read or written last, and its version, empty if there is none. Its threads are those that are known to be
// in the log.
type joined struct {
	session.Session
	version string
	first   []session.ThreadID // those of Threads that the record names
	begun   int                // threads that this process has added since it knows the session
}

// maxKnown is how many of the sessions that were written to last are remembered. An append to one of them need not read it.
const maxKnown = 4096

// readJoined reads a session's record, and its newest threads.
func (s *Store) readJoined(ctx context.Context, id session.SessionID) (joined, error) {
	found, err := s.store.Read(ctx, store.Query{Records: []store.Select{selectSession(id)}})
	if err != nil {
		return joined{}, err
	}
	return parseJoined(id, found.Records[0])
}

func selectSession(id session.SessionID) store.Select {
	return store.Select{Key: sessionKey(id), Fields: []string{"r", "v", "m"}, Log: logThreads, Newest: 2 * session.MaxThreads}
}

func parseJoined(id session.SessionID, rec store.Record) (joined, error) {
	j := joined{Session: session.Session{ID: id}, version: rec.Fields["v"]}
	if j.version == "" {
		return j, nil
	}
	var ses session.Session
	if text := rec.Fields["r"]; text != "" {
		var err error
		if ses, err = codec.ParseSession([]byte(text)); err != nil {
			return j, fmt.Errorf("session record: %w", err)
		}
	}
	ses.ID = id
	j.Session, j.first = ses, ses.Threads
	j.Requests = int(number(rec.Fields["m"]))
	j.Threads = threadsOf(j.first, rec.Newest)
	return j, nil
}

// threadsOf returns the threads that a session's record and its log name, each once, where it was named last.
func threadsOf(first []session.ThreadID, log []string) (all []session.ThreadID) {
	named := slices.Clone(first)
	for _, id := range log {
		named = append(named, session.ThreadID(id))
	}
	seen := map[session.ThreadID]bool{}
	for _, id := range slices.Backward(named) {
		if !seen[id] {
			all = append(all, id)
		}
		seen[id] = true
	}
	slices.Reverse(all)
	return all
}

// join returns the part that adds a batch's thread to a session, and the session afterwards. A thread that was announced is named once more, in case
// the session was deleted meanwhile.
func (j joined) join(b session.Batch) (store.Part, joined) {
	t, next := b.Thread, j
	part := store.Part{Key: sessionKey(j.ID), If: []store.Cond{is("v", j.version)}, Add: []store.Count{{Name: "m", N: 1}}}
	switch {
	case slices.Contains(j.Threads, t.ID):
	case len(j.first) < maxInRecord && len(j.first) == len(j.Threads):
		next.Threads = append(slices.Clone(j.Threads), t.ID)
		next.first = next.Threads
	default:
		next.Threads = append(slices.Clone(j.Threads[max(0, len(j.Threads)-2*session.MaxThreads):]), t.ID)
		next.begun++
		part.Log = []store.Append{{Log: logThreads, Entries: []string{string(t.ID)}}}
	}
	next.Names = slices.Clone(j.Names)
	next.AddKey(b.Key)
	next.Tenant = cmp.Or(t.Tenant, j.Tenant)
	if j.version == "" {
		next.Created = t.Created
	}
	if j.version == "" || next.Key != j.Key || len(next.Names) != len(j.Names) || next.Tenant != j.Tenant || len(next.first) != len(j.first) {
		next.version = versionOf()
		record := next.Session
		record.ID, record.Threads, record.Requests = "", next.first, 0 // it is kept under its id
		part.Set = []store.Field{set("r", string(codec.Session(record))), set("v", next.version)}
	}
	return part, next
}

// Session implements session.Store. It takes two round trips, because a session's threads may expire before its record.
func (s *Store) Session(ctx context.Context, id session.SessionID) (session.Session, error) {
	all, err := s.readSessions(ctx, []session.SessionID{id})
	if err != nil {
		return session.Session{}, err
	}
	if len(all[0].Threads) == 0 {
		return session.Session{}, session.ErrNotFound // a record whose threads have expired counts as expired
	}
	return all[0], nil
}

// readSessions reads sessions with those of their threads that still exist.
func (s *Store) readSessions(ctx context.Context, ids []session.SessionID) ([]session.Session, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	q := store.Query{}
	for _, id := range ids {
		q.Records = append(q.Records, selectSession(id))
	}
	found, err := s.store.Read(ctx, q)
	if err != nil {
		return nil, err
	}
	all, threads := make([]session.Session, len(ids)), store.Query{}
	for i, id := range ids {
		j, err := parseJoined(id, found.Records[i])
		if err != nil {
			return nil, err
		}
		all[i] = j.Session
		for _, thread := range j.Threads {
			threads.Records = append(threads.Records, store.Select{Key: threadKey(thread), Fields: []string{"r"}})
		}
	}
	if len(threads.Records) == 0 {
		return all, nil
	}
	found, err = s.store.Read(ctx, threads)
	if err != nil {
		return nil, err
	}
	next := found.Records
	for i := range all {
		n := len(all[i].Threads)
		if err := keepLiving(&all[i], next[:n]); err != nil {
			return nil, err
		}
		next = next[n:]
	}
	return all, nil
}

// keepLiving removes expired threads from a session, and all but the newest. It updates when the session was last seen from the others, because
// a session's record is not written with each step.
func keepLiving(ses *session.Session, records []store.Record) error {
	var living []session.ThreadID
	for i, id := range ses.Threads {
		text := records[i].Fields["r"]
		if text == "" {
			continue
		}
		thread, err := codec.ParseThread([]byte(text))
		if err != nil {
			return fmt.Errorf("thread record: %w", err)
		}
		if thread.Session != ses.ID {
			continue // another thread has the id by now
		}
		if thread.Seen.After(ses.Seen) {
			ses.Seen = thread.Seen
		}
		living = append(living, id)
	}
	ses.Threads = living[max(0, len(living)-session.MaxThreads):]
	return nil
}

// maxScans is how many pages of records one page of sessions looks at.
const maxScans = 100

// Sessions implements session.Archive.
func (s *Store) Sessions(ctx context.Context, q session.SessionQuery) (page session.SessionPage, err error) {
	cursor := q.Cursor
	for range maxScans {
		found, err := s.store.Scan(ctx, kindSession, cursor)
		if err != nil {
			return page, err
		}
		ids := make([]session.SessionID, len(found.Keys))
		for i, key := range found.Keys {
			ids[i] = session.SessionID(key.Group)
		}
		all, err := s.readSessions(ctx, ids)
		if err != nil {
			return page, err
		}
		for i, ses := range all {
			if len(page.Sessions) == q.Limit {
				page.Next = cursor
				return page, nil
			}
			if len(ses.Threads) > 0 && q.Matches(ses) {
				page.Sessions = append(page.Sessions, ses)
			}
			cursor = found.Cursors[i]
		}
		if cursor = found.Next; cursor == "" {
			return page, nil
		}
	}
	page.Next = cursor
	return page, nil
}
