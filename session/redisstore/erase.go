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

// Compact implements session.Archive. There is nothing to do: the memory of Redis does not show what was deleted, and when it rewrites its
// own files is its operator's to say.
func (s *Store) Compact(context.Context) error { return nil }

// Forget implements session.Archive. It first deletes the records of the session's threads, which makes the session
// disappear for every request, and then their logs and indexes. If it is interrupted, it can be called again.
//
// In a Cluster, concurrent writes to other nodes may arrive late. Forget looks for them again when all such writes must
// have ended, and therefore takes as long as a write may.
func (s *Store) Forget(ctx context.Context, id session.SessionID) error {
	left, err := s.forget(ctx, id)
	if err != nil {
		return err
	}
	if len(left) == 0 {
		return session.ErrNotFound
	}
	if !s.options.Cluster {
		return nil
	}
	select {
	case <-time.After(s.lateWrites):
		return s.forgetLate(ctx, id, left)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leftKeys holds, for each deleted thread, the keys of the places and traces that it left.
type leftKeys map[session.ThreadID][]string

// forget deletes the session and returns the keys that its threads left, none if the session does not exist.
func (s *Store) forget(ctx context.Context, id session.SessionID) (leftKeys, error) {
	ids, err := s.detach(ctx, id)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	left := leftKeys{}
	for _, thread := range ids {
		left[thread], err = s.readLeft(ctx, thread)
		if err != nil {
			return nil, err
		}
	}
	if err := s.deleteLeft(ctx, left); err != nil {
		return nil, err
	}
	for chunk := range slices.Chunk(ids, chunkSize) {
		err := s.pipeline(ctx, s.write, func(ctx context.Context, pipe redis.Pipeliner) {
			for _, thread := range chunk {
				pipe.Del(ctx, s.keys.doomedLog(thread), s.keys.doomedLeft(thread))
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return left, s.write(ctx, func(ctx context.Context) error { return s.client.Del(ctx, s.keys.doomedSession(id)).Err() })
}

// forgetLate deletes the results of writes that were under way when the session was deleted.
func (s *Store) forgetLate(ctx context.Context, id session.SessionID, left leftKeys) error {
	ses, err := s.Session(ctx, id)
	if err == nil {
		for _, thread := range ses.Threads {
			delete(left, thread) // it has begun again
		}
	} else if _, err := s.forget(ctx, id); err != nil { // there may be a record without a thread
		return err
	}
	return s.deleteLeft(ctx, left)
}

// maxDetaches is how often detach looks for the record of a session that is written to while it is deleted.
const maxDetaches = 5

// detach moves a session and its threads away, so that they can no longer be written to, and returns the threads. A request
// that was about to write to a thread may have added it to the session's record again, so detach repeats until the record
// stays away.
func (s *Store) detach(ctx context.Context, id session.SessionID) (ids []session.ThreadID, err error) {
	for range maxDetaches {
		if err := s.deleteJournal(ctx, id); err != nil {
			return nil, err
		}
		keys := []string{s.keys.session(id), s.keys.doomedSession(id), s.keys.unlisted(id)}
		fields, err := result(ctx, s.write, func(ctx context.Context) ([]string, error) {
			return s.client.Eval(ctx, detachSessionScript, keys).StringSlice()
		})
		if err == nil && len(fields) == 0 {
			err = checkLen(fields, 1)
		}
		if err != nil {
			return nil, err
		}
		if existed := fields[0] == "1"; !existed && (len(ids) > 0 || len(fields) == 1) {
			break
		}
		ids = ids[:0]
		for _, field := range fields[1:] {
			if thread, ok := strings.CutPrefix(field, "t:"); ok {
				ids = append(ids, session.ThreadID(thread))
			}
		}
		for chunk := range slices.Chunk(ids, chunkSize) {
			err := s.pipeline(ctx, s.write, func(ctx context.Context, pipe redis.Pipeliner) {
				for _, id := range chunk {
					keys := append(s.threadKeys(id), s.keys.lock(id), s.keys.doomedLog(id), s.keys.doomedLeft(id))
					pipe.Eval(ctx, detachThreadScript, keys)
				}
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return ids, nil
}

// chunkSize is how many entries of a list, keys or threads are handled in one round trip.
const chunkSize = 512

// readLeft returns the keys of the places and traces that a detached thread may have left.
func (s *Store) readLeft(ctx context.Context, id session.ThreadID) (keys []string, err error) {
	err = s.eachEntry(ctx, s.keys.doomedLog(id), func(entry string) {
		chains, _ := codec.ChainsOf([]byte(entry)) // none of a damaged entry
		keys = append(keys, s.keys.indexed(chains, nil)...)
	})
	if err != nil {
		return nil, err
	}
	err = s.eachEntry(ctx, s.keys.doomedLeft(id), func(entry string) {
		if entry == "" || entry[0] != leftTraces {
			return
		}
		for hash := range slices.Chunk([]byte(entry[1:]), codec.ShortLen) {
			keys = append(keys, s.keys.traces()+string(hash))
		}
	})
	return keys, err
}

// eachEntry calls f for each entry of a list.
func (s *Store) eachEntry(ctx context.Context, key string, f func(string)) error {
	for from := int64(0); ; from += chunkSize {
		page, err := result(ctx, s.read, func(ctx context.Context) ([]string, error) {
			return s.client.LRange(ctx, key, from, from+chunkSize-1).Result()
		})
		if err != nil {
			return err
		}
		for _, entry := range page {
			f(entry)
		}
		if len(page) < chunkSize {
			return nil
		}
	}
}

// deleteLeft deletes the places and traces that point to deleted threads. Those that another thread has taken over stay.
func (s *Store) deleteLeft(ctx context.Context, left leftKeys) error {
	for _, keys := range left {
		for chunk := range slices.Chunk(keys, chunkSize) {
			got, _, err := s.get(ctx, chunk, "")
			if err != nil {
				return err
			}
			values := map[string]string{}
			for i, text := range got {
				p, err := codec.ParsePlace([]byte(text), session.Place{})
				if _, deleted := left[p.Thread]; err == nil && deleted {
					values[chunk[i]] = text
				}
			}
			if err := s.deleteUnchanged(ctx, values); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteUnchanged deletes the keys that still have the given values.
func (s *Store) deleteUnchanged(ctx context.Context, values map[string]string) error {
	if len(values) == 0 {
		return nil
	}
	return s.pipeline(ctx, s.write, func(ctx context.Context, pipe redis.Pipeliner) {
		for key, value := range values {
			pipe.Eval(ctx, deleteScript, []string{key}, value)
		}
	})
}

// withdraw removes the index entries of a batch when its thread, or that thread's parent, was deleted during the append. own is the point
// of the thread that has the id now, empty if there is none. If it differs from the batch's point, another thread began with that id, and
// withdraw does not touch it.
func (s *Store) withdraw(ctx context.Context, b session.Batch, values map[string]string, own string) error {
	if err := s.deleteUnchanged(ctx, values); err != nil {
		return err
	}
	ours := strings.HasSuffix(own, createdSuffix(b.Thread.Created))
	if own != "" && !ours {
		return nil
	}
	return s.pipeline(ctx, s.write, func(ctx context.Context, pipe redis.Pipeliner) {
		if id := b.Thread.ID; ours { // a fork that just began, without its parent
			pipe.Del(ctx, append(s.threadKeys(id), s.keys.lock(id))...)
		}
		if b.Thread.Session != "" {
			pipe.Eval(ctx, leaveScript, []string{s.keys.session(b.Thread.Session)}, string(b.Thread.ID))
		}
	})
}
