package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// Append implements session.Store. It is two round trips: the log and the thread's record at once, then the indexes,
// which live in other slots. An error of the second leaves the batch appended. To begin a fork takes one more.
func (s *Store) Append(ctx context.Context, b session.Batch) error {
	err := codec.CheckIDs(b.Thread.ID, b.Thread.Session)
	var shared []session.ThreadID
	if err == nil {
		shared, err = s.sharedBy(ctx, b)
	}
	if err == nil {
		shared, err = s.appendLog(ctx, b, shared)
	}
	if err == nil {
		err = s.index(ctx, b, shared)
	}
	if err != nil {
		return fmt.Errorf("append to %s: %w", b.Thread.ID, err)
	}
	return nil
}

// appendLog gives the threads whose logs this one shares: those of the batch, if it begins.
func (s *Store) appendLog(ctx context.Context, b session.Batch, shared []session.ThreadID) ([]session.ThreadID, error) {
	keys, args := []string{s.keys.thread(b.Thread.ID), s.keys.log(b.Thread.ID)}, s.appendArgs(b, shared)
	var kept string
	err := s.write(ctx, func(ctx context.Context) (err error) {
		kept, err = s.scripts.append.Run(ctx, s.client, keys, args...).Text()
		return err
	})
	if errors.Is(err, session.ErrNotFound) {
		return nil, fmt.Errorf("%w: the thread is not at %d", session.ErrStale, b.At)
	}
	return splitIDs(kept), err
}

func (s *Store) appendArgs(b session.Batch, shared []session.ThreadID) []any {
	args := make([]any, 0, 7+len(b.Events))
	begins := 0
	if codec.Begins(b) {
		begins = 1
	}
	args = append(args, b.At, begins, codec.Thread(b.Thread), b.Thread.Len, codec.List(b.Thread.Condensations),
		joinIDs(shared), s.options.TTL.Milliseconds())
	for _, e := range b.Events {
		args = append(args, s.content.Event(b.Thread.ID, e))
	}
	return args
}

// index writes the places, the traces and the session's record, and keeps the shared threads alive.
func (s *Store) index(ctx context.Context, b session.Batch, shared []session.ThreadID) error {
	if len(b.Places)+len(b.Traces)+len(shared) == 0 && b.Thread.Session == "" {
		return nil
	}
	return s.write(ctx, func(ctx context.Context) error {
		pipe := s.client.Pipeline()
		for _, p := range b.Places {
			pipe.Set(ctx, s.keys.place(p.Hash), codec.Place(p.Place), s.options.TTL)
		}
		s.mark(ctx, pipe, b.Traces, codec.Last(b))
		if b.Thread.Session != "" {
			s.join(ctx, pipe, b)
		}
		s.keep(ctx, pipe, shared)
		return failure(pipe.Exec(ctx))
	})
}

// Mark implements session.Store.
func (s *Store) Mark(ctx context.Context, traces []session.Hash, at session.Place) error {
	if len(traces) == 0 {
		return ctx.Err()
	}
	err := s.write(ctx, func(ctx context.Context) error {
		pipe := s.client.Pipeline()
		s.mark(ctx, pipe, traces, at)
		return failure(pipe.Exec(ctx))
	})
	if err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	return nil
}

func (s *Store) mark(ctx context.Context, pipe redis.Pipeliner, traces []session.Hash, at session.Place) {
	if len(traces) == 0 {
		return
	}
	place := codec.Place(at)
	for _, h := range traces {
		pipe.Set(ctx, s.keys.trace(h), place, s.options.TTL)
	}
}
