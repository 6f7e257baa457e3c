package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// Find implements session.Store. It sends one pipeline, in a Cluster one to each node involved, concurrently.
func (s *Store) Find(ctx context.Context, hashes []session.Hash, hint session.ThreadID, traces ...session.Hash) (session.Found, error) {
	got, hinted, err := s.get(ctx, s.keys.indexed(hashes, traces), hint)
	if err != nil {
		return session.Found{}, err
	}
	places, last := make([]session.Place, len(got)), session.Place{}
	for i, text := range got {
		if text == "" {
			continue
		}
		if last, err = codec.ParsePlace([]byte(text), last); err != nil {
			return session.Found{}, fmt.Errorf("place: %w", err)
		}
		places[i] = last
	}
	found := session.Found{Places: places[:len(hashes):len(hashes)]}
	if len(traces) > 0 {
		found.Traced = places[len(hashes):]
	}
	if hint == "" || hinted[0] == "" {
		return found, nil
	}
	thread, err := parseThread(hinted)
	if err != nil {
		return session.Found{}, err
	}
	found.Hinted = &thread
	return found, nil
}

func (s *Store) Trace(ctx context.Context, traces []session.Hash) ([]session.Place, error) {
	found, err := s.Find(ctx, nil, "", traces...)
	return found.Traced, err
}

// get reads string keys, "" for those that do not exist, and the hinted thread's fields, nil without a hint, in one pipeline.
func (s *Store) get(ctx context.Context, keys []string, hint session.ThreadID) (got, thread []string, err error) {
	if len(keys) == 0 && hint == "" {
		return nil, nil, ctx.Err()
	}
	var values func() []any
	var hinted *redis.SliceCmd
	err = s.pipeline(ctx, s.read, func(ctx context.Context, pipe redis.Pipeliner) {
		values = s.values(ctx, pipe, keys)
		if hint != "" {
			hinted = pipe.HMGet(ctx, s.keys.thread(hint), threadFields...)
		}
	})
	if err == nil {
		got, err = texts(values(), len(keys))
	}
	if err == nil && hint != "" {
		thread, err = texts(hinted.Val(), len(threadFields))
	}
	return got, thread, err
}

// checkLen returns an error if a reply does not have the expected length.
func checkLen[T any](reply []T, want int) error {
	if len(reply) == want {
		return nil
	}
	return fmt.Errorf("%w: the server returned %d values instead of %d", session.ErrUnavailable, len(reply), want)
}

// values adds commands to a pipeline that read string keys, and returns a function that returns the values after the
// pipeline has run. A single command reads all keys, which costs half as much as one for each. A Cluster, where the slots
// differ, needs one for each.
func (s *Store) values(ctx context.Context, pipe redis.Pipeliner, keys []string) func() []any {
	if len(keys) == 0 {
		return func() []any { return nil }
	}
	if !s.options.Cluster {
		return pipe.MGet(ctx, keys...).Val
	}
	each := make([]*redis.StringCmd, len(keys))
	for i, key := range keys {
		each[i] = pipe.Get(ctx, key)
	}
	return func() []any {
		got := make([]any, len(each))
		for i, c := range each {
			if c.Err() == nil {
				got[i] = c.Val()
			}
		}
		return got
	}
}

// pipelineErr returns the first error of a pipeline's commands other than an absent value. The pipeline's own error may be
// an absent value that hides another error.
func pipelineErr(commands []redis.Cmder, err error) error {
	for _, c := range commands {
		if e := c.Err(); e != nil && !absent(e) {
			return e
		}
	}
	if absent(err) {
		return nil
	}
	return err
}

// threadFields are the fields of a record that parseThread needs.
var threadFields = []string{"r", "n", "c", "q", "m"}

func (s *Store) Thread(ctx context.Context, id session.ThreadID) (session.Thread, error) {
	fields, err := s.fields(ctx, s.keys.thread(id), threadFields...)
	if err != nil {
		return session.Thread{}, err
	}
	return parseThread(fields)
}

// parseThread decodes the values of threadFields, or returns ErrNotFound.
func parseThread(fields []string) (session.Thread, error) {
	if fields[0] == "" {
		return session.Thread{}, session.ErrNotFound
	}
	thread, err := codec.ParseThread([]byte(fields[0]))
	if err == nil {
		thread.Seq, err = strconv.ParseUint(fields[1], 10, 64)
	}
	if err == nil {
		err = codec.SetList(&thread, []byte(fields[2]))
	}
	thread.Requested, thread.Requests = 0, 0 // the encoded record may be older than the fields
	if err == nil && fields[3] != "" {
		thread.Requested, err = strconv.ParseUint(fields[3], 10, 64)
	}
	if err == nil && fields[4] != "" {
		thread.Requests, err = strconv.Atoi(fields[4])
	}
	if err != nil {
		return session.Thread{}, fmt.Errorf("thread record: %w", err)
	}
	return thread, nil
}

func (s *Store) Summary(ctx context.Context, id session.CondensationID) (string, error) {
	fields, err := s.fields(ctx, s.keys.thread(id.Thread), "s"+strconv.FormatUint(id.Seq, 10), "c")
	if err != nil {
		return "", err
	}
	if fields[0] == "" {
		return "", session.ErrNotFound
	}
	return s.content.ParseSummary([]byte(fields[0]), []byte(fields[1]), id)
}

// Events implements session.Store. It returns ErrNotFound if the thread does not exist.
func (s *Store) Events(ctx context.Context, id session.ThreadID, at uint64, limit int) ([]session.Event, error) {
	// Lua numbers are doubles, which are exact below 2^53. No log gets that long.
	at, limit = min(at, 1<<52), min(max(limit, -1<<31+1), 1<<31-1)
	read := script{eventsScript, []string{s.keys.thread(id), s.keys.log(id)}, []any{at, limit, session.PageBytes}}
	got, err := result(ctx, s.read, func(ctx context.Context) ([]any, error) { return read.run(ctx, s).Slice() })
	if err != nil {
		return nil, err
	}
	if len(got) == 0 {
		return nil, checkLen(got, 1)
	}
	seq, ok := got[0].(int64)
	if !ok {
		return nil, codec.ErrCorrupt
	}
	page, step := codec.Page{Limit: limit}, int64(cmp.Compare(limit, 0))
	for i := 1; i < len(got) && !page.Full(); i++ {
		text, _ := got[i].(string)
		entry, _ := s.content.ParseEvents(id, []byte(text), uint64(seq)) //nolint:gosec // a script counts from 1. A damaged one fails no others
		page.Add(entry)
		seq += step
	}
	return page.Events(), nil
}
