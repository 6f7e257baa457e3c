package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// Condense implements session.Store. It is as durable as the server's configuration makes writes.
func (s *Store) Condense(ctx context.Context, id session.ThreadID, c session.Condensation) (session.Condensation, error) {
	c.ID = session.CondensationID{Thread: id}
	args := []any{
		s.content.Event(id, codec.Condensed(c)), s.options.TTL.Milliseconds(), rand.Text(), c.Answers(), codec.Condensation(c), s.content.Text(c),
	}
	seq, err := runScript(ctx, s, script{logScript, s.threadKeys(id), args}, (*redis.Cmd).Uint64)
	if err != nil {
		return session.Condensation{}, err
	}
	c.ID.Seq = seq
	return c, nil
}

func (s *Store) Prepare(ctx context.Context, id session.ThreadID, c session.Condensation) error {
	return s.execScript(ctx, script{prepareScript, []string{s.keys.thread(id)}, []any{s.content.Prepared(id, c)}})
}

func (s *Store) Prepared(ctx context.Context, id session.ThreadID) (session.Condensation, error) {
	value, err := result(ctx, s.read, func(ctx context.Context) ([]byte, error) {
		return s.client.HGet(ctx, s.keys.thread(id), "p").Bytes()
	})
	if err != nil {
		return session.Condensation{}, err
	}
	return s.content.ParsePrepared(id, value)
}

// Lock implements session.Store. If the release does not reach the server, the lock expires.
func (s *Store) Lock(ctx context.Context, id session.ThreadID, ttl time.Duration) (session.Lease, error) {
	if ttl < time.Millisecond {
		return session.Lease{}, fmt.Errorf("ttl of %v: it must be at least %v", ttl, time.Millisecond)
	}
	keys, own := []string{s.keys.lock(id)}, rand.Text()
	hold := func(ctx context.Context) error {
		held, err := runScript(ctx, s, script{lockScript, keys, []any{own, ttl.Milliseconds()}}, (*redis.Cmd).Bool)
		if err == nil && !held {
			return session.ErrLocked
		}
		return err
	}
	if err := hold(ctx); err != nil {
		return session.Lease{}, err
	}
	release := func() { _ = s.execScript(context.Background(), script{deleteScript, keys, []any{own}}) }
	return session.Lease{Renew: hold, Release: release}, nil
}

// savingsFields are the fields of a record that hold the thread's savings: the sums in the order of sumsOf, then Unpriced.
var savingsFields = []string{"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "vm"}

// sumsOf returns the sums in savingsFields. A field name is never reused for another sum.
func sumsOf(s *session.Savings) []int64 {
	return []int64{
		s.Tokens, s.NotSent, s.Rewritten,
		int64(s.Calls), int64(s.Used.Input), int64(s.Used.Cached), int64(s.Used.Output), s.Nano, int64(s.Took),
	}
}

func (s *Store) Save(ctx context.Context, id session.ThreadID, more session.Savings) error {
	args := []any{rand.Text(), more.Unpriced}
	for i, n := range sumsOf(&more) {
		if n != 0 {
			args = append(args, savingsFields[i], n)
		}
	}
	return s.execScript(ctx, script{saveScript, []string{s.keys.thread(id)}, args})
}

func (s *Store) Saved(ctx context.Context, id session.ThreadID) (session.Savings, error) {
	fields, err := s.fields(ctx, s.keys.thread(id), savingsFields...)
	if err != nil {
		return session.Savings{}, err
	}
	n := make([]int64, len(fields))
	for i, text := range fields {
		n[i], _ = strconv.ParseInt(text, 10, 64) // 0 for a field that does not exist
	}
	return session.Savings{
		Tokens: n[0], NotSent: n[1], Rewritten: n[2],
		Cost: session.Cost{
			Calls: int(n[3]), Used: session.Usage{Input: int(n[4]), Cached: int(n[5]), Output: int(n[6])}, Nano: n[7], Took: time.Duration(n[8]),
			Unpriced: fields[9],
		},
	}, nil
}
