package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// A script can use keys of one slot only. Where a write touches several slots, a script writes the thread, and separate
// commands write the session and the indexes.

// multiSlot reports whether writes touch several slots.
func (s *Store) multiSlot() bool { return s.options.Cluster || s.crossSlot.Load() }

// refusedSlots reports whether a server that was not configured as a Cluster refused a script because of its slots. Such a
// server is a proxy in front of a cluster, and gets no such scripts from then on.
func (s *Store) refusedSlots(err error) bool {
	if err != nil && redis.HasErrorPrefix(err, "CROSSSLOT") {
		s.crossSlot.Store(true)
		return true
	}
	return false
}

// appendSplit appends to the log, and then writes the indexes.
func (s *Store) appendSplit(ctx context.Context, b session.Batch, shared []session.ThreadID) (appended, error) {
	scripts := []script{{appendScript, s.threadKeys(b.Thread.ID), s.appendArgs(b, shared, false)}}
	if codec.Begins(b) && b.Thread.Session != "" {
		// The thread is added to its session's record before it logs anything, so that deleting the session finds all of it.
		scripts = slices.Insert(scripts, 0, s.joinSession(b, "HSETNX", false))
	}
	result, err := s.appendBy(ctx, scripts...)
	if err == nil {
		err = s.index(ctx, b, result)
	}
	return result, err
}

// index writes the places, the traces and the session's record. If the thread was deleted in the meantime, index removes
// them again and returns ErrStale.
func (s *Store) index(ctx context.Context, b session.Batch, result appended) error {
	if len(b.Places)+len(b.Passed)+b.Traces.Len() == 0 && b.Thread.Session == "" {
		return nil
	}
	values, firsts := s.traceValues(b.Traces, codec.Last(b))
	ids := append([]session.ThreadID{b.Thread.ID}, needed(b)...)
	for _, p := range b.Places {
		values[s.keys.place(p.Hash)] = string(codec.Place(p.Place))
	}
	points := make([]*redis.StringCmd, len(ids))
	err := s.pipe(ctx, func(pipe redis.Pipeliner, add addScript) {
		s.set(ctx, pipe, values)
		s.setFirst(ctx, pipe, firsts)
		s.drop(add, b.Thread.ID, s.keys.traces(), []byte(result.excess))
		s.drop(add, b.Thread.ID, s.keys.places(), codec.JoinShort(b.Passed))
		if b.Thread.Session != "" {
			add(s.joinSession(b, "HSET", result.renewed))
		}
		// Read last: if the thread exists now, a deletion that comes later finds everything above.
		for i, id := range ids {
			points[i] = pipe.HGet(ctx, s.keys.thread(id), "l")
		}
	})
	if err != nil {
		return err
	}
	complete := pointOf(points[0].Val(), b.Thread.Created)
	for i, point := range points[1:] {
		created := time.Time{}
		if i == 0 && forks(b) {
			created = b.ParentCreated
		}
		complete = complete && pointOf(point.Val(), created)
	}
	if complete {
		return nil
	}
	maps.Copy(values, firsts)
	if err := s.withdraw(ctx, b, values, points[0].Val()); err != nil {
		return err
	}
	return fmt.Errorf("%w: the thread, or a thread that it needs, was deleted", session.ErrStale)
}

// addScript adds a script to a pipeline.
type addScript func(script) *redis.Cmd

// pipe runs the writing commands and scripts that fill adds to a pipeline in one round trip. Scripts are sent by their
// hashes. If a server does not know one of them, pipe sends everything again with the scripts' texts, which does no harm.
func (s *Store) pipe(ctx context.Context, fill func(redis.Pipeliner, addScript)) error {
	send := func(eval func(*redis.Script, context.Context, redis.Scripter, []string, ...any) *redis.Cmd) error {
		return s.pipeline(ctx, s.write, func(ctx context.Context, pipe redis.Pipeliner) {
			fill(pipe, func(c script) *redis.Cmd { return eval(redis.NewScript(c.text), ctx, pipe, c.keys, c.args...) })
		})
	}
	err := send((*redis.Script).EvalSha)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		err = send((*redis.Script).Eval)
	}
	return err
}

// Mark implements session.Store. It takes one round trip.
func (s *Store) Mark(ctx context.Context, at session.Place, traces session.Traces) error {
	if traces.Len() == 0 && traces.Request == 0 {
		return ctx.Err()
	}
	keys := []string{s.keys.thread(at.Thread), s.keys.left(at.Thread)}
	args := []any{
		leftHashes(traces.Lasting), s.options.TTL.Milliseconds(), s.lease().Milliseconds(), codec.Place(at), len(traces.First), recentOf(traces),
		s.keys.traces(), codec.InThread(at.Thread), append([]byte{leftAnswer}, codec.Answer(session.Answer{Pos: at.Pos, Request: traces.Request})...),
	}
	if !s.multiSlot() {
		err := s.execScript(ctx, script{markScript, slices.Concat(keys, s.keys.indexed(nil, allOf(traces))), args})
		if !s.refusedSlots(err) {
			return err
		}
	}
	// The traces are written in the same round trip as the thread's list of them. If the thread does not exist, they are removed again.
	var marked *redis.Cmd
	var exists *redis.IntCmd
	values, firsts := s.traceValues(traces, at)
	err := s.pipe(ctx, func(pipe redis.Pipeliner, add addScript) {
		marked = add(script{markScript, keys, args})
		s.set(ctx, pipe, values)
		s.setFirst(ctx, pipe, firsts)
		exists = pipe.Exists(ctx, keys[0])
	})
	if err != nil {
		return err
	}
	if exists.Val() > 0 {
		excess, _ := marked.Text() // none if the thread has just begun again
		return s.dropAll(ctx, at.Thread, excess)
	}
	maps.Copy(values, firsts)
	if err := s.deleteUnchanged(ctx, values); err != nil {
		return err
	}
	return session.ErrNotFound
}

// The list of what a thread left has entries of two kinds, which their first byte tells apart: Short forms of lasting traces, and an answer.
const (
	leftTraces byte = 'h'
	leftAnswer byte = 'a'
)

// leftHashes returns the entry of lasting traces, empty if there are none.
func leftHashes(hashes []session.Hash) []byte {
	if len(hashes) == 0 {
		return nil
	}
	return append([]byte{leftTraces}, codec.JoinShort(hashes)...)
}

// Answers implements session.Store.
func (s *Store) Answers(ctx context.Context, id session.ThreadID) (all []session.Answer, err error) {
	entries, err := result(ctx, s.read, func(ctx context.Context) ([]string, error) {
		return s.client.LRange(ctx, s.keys.left(id), 0, -1).Result()
	})
	for _, e := range entries {
		if e != "" && e[0] == leftAnswer {
			all = append(all, codec.ParseAnswers([]byte(e[1:]))...)
		}
	}
	return all, err
}

// drop adds scripts to a pipeline that delete traces or places of a thread, whose keys consist of a prefix and the Short forms of hashes.
func (s *Store) drop(add addScript, thread session.ThreadID, prefix string, hashes []byte) {
	for hash := range slices.Chunk(hashes, codec.ShortLen) {
		add(script{dropScript, []string{prefix + string(hash)}, []any{codec.InThread(thread)}})
	}
}

// dropAll deletes recent traces of a thread, of which there are usually none.
func (s *Store) dropAll(ctx context.Context, thread session.ThreadID, excess string) error {
	if excess == "" {
		return nil
	}
	return s.pipe(ctx, func(_ redis.Pipeliner, add addScript) { s.drop(add, thread, s.keys.traces(), []byte(excess)) })
}

// traceValues returns the keys and values of traces that point to a place. firsts are those that keep the place that they point to already.
func (s *Store) traceValues(traces session.Traces, at session.Place) (values, firsts map[string]string) {
	values, firsts = map[string]string{}, map[string]string{}
	place := string(codec.Place(at))
	for _, h := range slices.Concat(traces.Lasting, traces.Recent) {
		values[s.keys.trace(h)] = place
	}
	for _, h := range traces.First {
		firsts[s.keys.trace(h)] = place
	}
	return values, firsts
}

// set adds commands to a pipeline that set the values.
func (s *Store) set(ctx context.Context, pipe redis.Pipeliner, values map[string]string) {
	for key, value := range values {
		pipe.Set(ctx, key, value, s.options.TTL)
	}
}

// setFirst is set for keys that keep the value that they have.
func (s *Store) setFirst(ctx context.Context, pipe redis.Pipeliner, values map[string]string) {
	for key, value := range values {
		pipe.SetArgs(ctx, key, value, redis.SetArgs{Mode: "NX", TTL: s.options.TTL})
	}
}
