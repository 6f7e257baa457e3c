package records

import (
	"context"
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// The logs of a thread.
const (
	logEvents  = 'e'
	logLeft    = 'x'
	threadLogs = "ex"
)

// threadFields are the fields that parseThread needs.
var threadFields = []string{"r", store.End(logEvents), "c", "q", "m"}

// Find implements session.Store in one round trip.
func (s *Store) Find(ctx context.Context, hashes []session.Hash, hint session.ThreadID, traces ...session.Hash) (session.Found, error) {
	q := store.Query{}
	for _, h := range hashes {
		q.Entries = append(q.Entries, placeKey(h))
	}
	for _, h := range traces {
		q.Entries = append(q.Entries, traceKey(h))
	}
	if hint != "" {
		q.Records = []store.Select{{Key: threadKey(hint), Fields: threadFields}}
	}
	if len(q.Entries)+len(q.Records) == 0 {
		return session.Found{Places: []session.Place{}}, ctx.Err()
	}
	got, err := s.store.Read(ctx, q)
	if err != nil {
		return session.Found{}, err
	}
	places, err := parsePlaces(got.Entries)
	if err != nil {
		return session.Found{}, err
	}
	found := session.Found{Places: places[:len(hashes):len(hashes)]}
	if len(traces) > 0 {
		found.Traced = places[len(hashes):]
	}
	if hint == "" || got.Records[0].Fields["r"] == "" {
		return found, nil
	}
	thread, err := parseThread(got.Records[0])
	if err != nil {
		return session.Found{}, err
	}
	found.Hinted = &thread
	return found, nil
}

func parsePlaces(entries []string) (_ []session.Place, err error) {
	places, last := make([]session.Place, len(entries)), session.Place{}
	for i, text := range entries {
		if text == "" {
			continue
		}
		if last, err = codec.ParsePlace([]byte(text), last); err != nil {
			return nil, fmt.Errorf("place: %w", err)
		}
		places[i] = last
	}
	return places, nil
}

// Trace implements session.Store.
func (s *Store) Trace(ctx context.Context, traces []session.Hash) ([]session.Place, error) {
	found, err := s.Find(ctx, nil, "", traces...)
	return found.Traced, err
}

// Thread implements session.Store.
func (s *Store) Thread(ctx context.Context, id session.ThreadID) (session.Thread, error) {
	rec, err := s.one(ctx, threadKey(id), threadFields...)
	if err != nil {
		return session.Thread{}, err
	}
	return parseThread(rec)
}

// parseThread decodes the values of threadFields, or returns ErrNotFound.
func parseThread(rec store.Record) (session.Thread, error) {
	if rec.Fields["r"] == "" {
		return session.Thread{}, session.ErrNotFound
	}
	thread, err := codec.ParseThread([]byte(rec.Fields["r"]))
	if err == nil {
		err = codec.SetList(&thread, []byte(rec.Fields["c"]))
	}
	if err != nil {
		return session.Thread{}, fmt.Errorf("thread record: %w", err)
	}
	thread.Seq = uint64(number(rec.Fields[store.End(logEvents)]))               //nolint:gosec // it counts
	thread.Requested = uint64(number(strings.TrimSuffix(rec.Fields["q"], ":"))) //nolint:gosec // an entry of the log
	thread.Requests = int(number(rec.Fields["m"]))
	return thread, nil
}

// Events implements session.Store.
func (s *Store) Events(ctx context.Context, id session.ThreadID, at uint64, limit int) ([]session.Event, error) {
	// Lua numbers are doubles, which are exact below 2^53. No log gets that long.
	at, limit = min(at, 1<<52), min(max(limit, -1<<31+1), 1<<31-1)
	got, err := s.store.Log(ctx, store.LogQuery{Key: threadKey(id), Log: logEvents, At: at, Limit: limit, Bytes: session.PageBytes})
	if err != nil {
		return nil, err
	}
	page, seq := codec.Page{Limit: limit}, got.First
	for i := 0; i < len(got.Entries) && !page.Full(); i++ {
		entry, _ := s.content.ParseEvents(id, []byte(got.Entries[i]), seq) // a damaged one fails no others
		page.Add(entry)
		if limit < 0 {
			seq--
		} else {
			seq++
		}
	}
	return page.Events(), nil
}

// The log x has entries of two kinds, which their first byte tells apart: Short forms of lasting traces, and an answer.
const (
	leftTraces = 'h'
	leftAnswer = 'a'
)

// leftHashes returns the entries of lasting traces, none if there are none.
func leftHashes(hashes []session.Hash) []string {
	if len(hashes) == 0 {
		return nil
	}
	return []string{string(leftTraces) + string(codec.JoinShort(hashes))}
}

// Mark implements session.Store in one round trip.
func (s *Store) Mark(ctx context.Context, at session.Place, traces session.Traces) error {
	if traces.Len() == 0 && traces.Request == 0 {
		return ctx.Err()
	}
	left := append(leftHashes(traces.Lasting), string(leftAnswer)+string(codec.Answer(session.Answer{Pos: at.Pos, Request: traces.Request})))
	c := store.Commit{
		Parts: []store.Part{{
			Key: threadKey(at.Thread), If: []store.Cond{there()}, Renew: store.Never, Log: []store.Append{{Log: logLeft, Entries: left}},
		}},
		Early: true,
	}
	addTraces(&c, traces, at)
	result, err := s.store.Commit(ctx, c)
	if err == nil && !result.OK() {
		err = session.ErrNotFound
	}
	return err
}

// addTraces makes a commit's traces point to a place.
func addTraces(c *store.Commit, traces session.Traces, at session.Place) {
	c.Owner, c.Most, c.RecentKind = string(codec.InThread(at.Thread)), session.MaxRecent, kindTrace
	place := string(codec.Place(at))
	for i, hashes := range [][]session.Hash{traces.Lasting, traces.Recent, traces.First} {
		for _, h := range hashes {
			c.Entries = append(c.Entries, store.Entry{Key: traceKey(h), Value: place, Recent: i > 0, First: i == 2})
		}
	}
}

// Answers implements session.Store.
func (s *Store) Answers(ctx context.Context, id session.ThreadID) (all []session.Answer, err error) {
	err = s.eachEntry(ctx, threadKey(id), logLeft, func(_ uint64, e string) {
		if e[0] == leftAnswer {
			all = append(all, codec.ParseAnswers([]byte(e[1:]))...)
		}
	})
	return all, err
}

// pageOf is how many entries of a log are read at once, and pageBytes their size.
const (
	pageOf    = 4096
	pageBytes = 8 << 20
)

// eachEntry calls f for each entry of a log, of which there are none if the record does not exist.
func (s *Store) eachEntry(ctx context.Context, key store.Key, log byte, f func(uint64, string)) error {
	for at := uint64(1); ; {
		page, err := s.store.Log(ctx, store.LogQuery{Key: key, Log: log, At: at, Limit: pageOf, Bytes: pageBytes})
		if err == session.ErrNotFound { //nolint:errorlint // as a store returns it
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		for i, entry := range page.Entries {
			if entry != "" {
				f(page.First+uint64(i), entry)
			}
		}
		if at = page.First + uint64(len(page.Entries)); at > page.End || len(page.Entries) == 0 {
			return nil
		}
	}
}
