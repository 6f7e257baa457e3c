package redisstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// Forget implements session.Archive. The session is gone for every request when its threads' records are, which comes
// first; what they left is deleted then. If it does not come to its end, it can be called again.
//
// In a Cluster, what was being written meanwhile to other nodes may arrive late: it is looked for once more when all such
// writes must have ended, so the call takes as long as a write may.
func (s *Store) Forget(ctx context.Context, id session.SessionID) error {
	known, err := s.forget(ctx, id)
	if err == nil && len(known) > 0 && s.options.Cluster {
		select {
		case <-time.After(s.late):
			err = s.forgetLate(ctx, id, known)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err == nil && len(known) == 0 {
		err = session.ErrNotFound
	}
	return err
}

// doomed is the keys of the places and traces that a session's threads had left when they ended.
type doomed map[session.ThreadID][]string

// forget deletes the session and gives what its threads left, none if there is no such session.
func (s *Store) forget(ctx context.Context, id session.SessionID) (doomed, error) {
	ids, err := s.take(ctx, id)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	known := doomed{}
	for _, thread := range ids {
		if known[thread], err = s.left(ctx, thread); err != nil {
			return nil, err
		}
	}
	if err := s.clear(ctx, known); err != nil {
		return nil, err
	}
	for some := range slices.Chunk(ids, leftRead) {
		err := s.pipeline(ctx, s.write, func(ctx context.Context, pipe redis.Pipeliner) {
			for _, thread := range some {
				pipe.Del(ctx, s.keys.doomedLog(thread), s.keys.doomedLeft(thread))
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return known, s.write(ctx, func(ctx context.Context) error { return s.client.Del(ctx, s.keys.doomedSession(id)).Err() })
}

// forgetLate deletes what was still being written when the session was deleted.
func (s *Store) forgetLate(ctx context.Context, id session.SessionID, known doomed) error {
	ses, err := s.Session(ctx, id)
	if err == nil {
		for _, thread := range ses.Threads {
			delete(known, thread) // it has begun anew
		}
	} else if _, err = s.forget(ctx, id); err != nil { // a record without a thread
		return err
	}
	return s.clear(ctx, known)
}

// takes bounds how often the record of a session is looked for that is written to while it is deleted.
const takes = 5

// take ends a session and its threads: none of them can be written to from now on. A request that was about to write to
// one may have put it into the session's record again, which is therefore looked for until it stays away.
func (s *Store) take(ctx context.Context, id session.SessionID) (ids []session.ThreadID, err error) {
	for range takes {
		keys := []string{s.keys.session(id), s.keys.doomedSession(id), s.keys.unlisted(id)}
		fields, err := result(ctx, s.write, func(ctx context.Context) ([]string, error) {
			return s.client.Eval(ctx, takeSessionScript, keys).StringSlice()
		})
		if err == nil && len(fields) == 0 {
			err = replied(fields, 1)
		}
		if err != nil {
			return nil, err
		}
		there := fields[0] == "1"
		if !there && (len(ids) > 0 || len(fields) == 1) {
			break
		}
		ids = ids[:0]
		for _, field := range fields[1:] {
			if thread, ok := strings.CutPrefix(field, "t:"); ok {
				ids = append(ids, session.ThreadID(thread))
			}
		}
		for some := range slices.Chunk(ids, leftRead) {
			if err := s.takeThreads(ctx, some); err != nil {
				return nil, err
			}
		}
	}
	return ids, nil
}

func (s *Store) takeThreads(ctx context.Context, ids []session.ThreadID) error {
	return s.pipeline(ctx, s.write, func(ctx context.Context, pipe redis.Pipeliner) {
		for _, id := range ids {
			keys := append(s.written(id), s.keys.lock(id), s.keys.doomedLog(id), s.keys.doomedLeft(id))
			pipe.Eval(ctx, takeThreadScript, keys)
		}
	})
}

// leftRead is how many entries of a log are read at once.
const leftRead = 512

// left reads which places and traces a thread that has ended may have left.
func (s *Store) left(ctx context.Context, id session.ThreadID) (keys []string, err error) {
	err = s.entries(ctx, s.keys.doomedLog(id), func(entry string) error {
		chain, err := codec.ChainOf([]byte(entry))
		if err == nil && !chain.IsZero() {
			keys = append(keys, s.keys.place(chain))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	err = s.entries(ctx, s.keys.doomedLeft(id), func(entry string) error {
		for hash := range slices.Chunk([]byte(entry), len(session.Hash{})) {
			if len(hash) == len(session.Hash{}) {
				keys = append(keys, s.keys.trace(session.Hash(hash)))
			}
		}
		return nil
	})
	return keys, err
}

// entries goes through a list.
func (s *Store) entries(ctx context.Context, key string, each func(string) error) error {
	for from := int64(0); ; from += leftRead {
		page, err := result(ctx, s.read, func(ctx context.Context) ([]string, error) {
			return s.client.LRange(ctx, key, from, from+leftRead-1).Result()
		})
		if err != nil {
			return err
		}
		for _, entry := range page {
			if err := each(entry); err != nil {
				return err
			}
		}
		if len(page) < leftRead {
			return nil
		}
	}
}

// clear deletes the places and traces that point to threads that have ended; those that another thread has taken over
// since stay.
func (s *Store) clear(ctx context.Context, known doomed) error {
	for _, left := range known {
		for keys := range slices.Chunk(left, leftRead) {
			got, _, err := s.get(ctx, keys, "")
			if err != nil {
				return err
			}
			values := map[string]string{}
			for i, text := range got {
				p, err := codec.ParsePlace([]byte(text))
				if _, ours := known[p.Thread]; err == nil && ours {
					values[keys[i]] = text
				}
			}
			if err := s.drop(ctx, values); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop deletes keys that still have these values.
func (s *Store) drop(ctx context.Context, values map[string]string) error {
	if len(values) == 0 {
		return nil
	}
	return s.pipeline(ctx, s.write, func(ctx context.Context, pipe redis.Pipeliner) {
		for key, value := range values {
			pipe.Eval(ctx, dropScript, []string{key}, value)
		}
	})
}

// withdraw takes back what a batch has set whose thread, or the parent of that, was deleted while it was written. own is the point of
// the thread that now has the name: none, the batch's own, or that of one which began anew and is left alone.
func (s *Store) withdraw(ctx context.Context, b session.Batch, values map[string]string, own string) error {
	ours := strings.HasSuffix(own, began(b.Thread.Created))
	if err := s.drop(ctx, values); err != nil || own != "" && !ours {
		return err
	}
	return s.pipeline(ctx, s.write, func(ctx context.Context, pipe redis.Pipeliner) {
		if id := b.Thread.ID; ours { // a fork that began just now, without its parent
			pipe.Del(ctx, append(s.written(id), s.keys.lock(id))...)
		}
		if b.Thread.Session != "" {
			pipe.Eval(ctx, leaveScript, []string{s.keys.session(b.Thread.Session)}, string(b.Thread.ID))
		}
	})
}
