package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// maxIndexed is how many places and traces one script writes together with a batch, which blocks the server for some
// milliseconds.
const maxIndexed = 2048

// Append implements session.Store. It takes one round trip, another one to begin a fork, and occasionally another one to renew the leases
// of shared threads. In a Cluster, the indexes are in other slots and take a second round trip. So do those of a batch that is so large that
// one script would block a single server. If a later round trip fails, the batch has been appended nevertheless.
func (s *Store) Append(ctx context.Context, b session.Batch) error {
	if err := codec.CheckIDs(b.Thread.ID, b.Thread.Session); err != nil {
		return err
	}
	shared, err := s.sharedBy(ctx, b)
	if err != nil {
		return err
	}
	var result appended
	split := s.multiSlot() || len(b.Places)+b.Traces.Len() > maxIndexed
	if !split {
		result, err = s.appendBy(ctx, script{appendScript, s.batchKeys(b), s.appendArgs(b, shared, true)})
		split = s.refusedSlots(err)
	}
	if split {
		result, err = s.appendSplit(ctx, b, shared)
	}
	switch {
	case errors.Is(err, session.ErrNotFound):
		return fmt.Errorf("%w: the thread is not at %d, or a thread that it needs is gone", session.ErrStale, b.At)
	case err != nil:
		return err
	}
	return s.maintain(ctx, b, result)
}

// appended is the result of an append.
type appended struct {
	renewed bool               // the thread's lease was renewed
	shared  []session.ThreadID // the threads whose logs the thread shares
	excess  string             // recent traces that are too many
}

// appendBy runs scripts in one round trip. The last one is appendScript.
func (s *Store) appendBy(ctx context.Context, scripts ...script) (appended, error) {
	var last *redis.Cmd
	err := s.pipe(ctx, func(_ redis.Pipeliner, add addScript) {
		for _, c := range scripts {
			last = add(c)
		}
	})
	if err != nil {
		return appended{}, err
	}
	reply, err := last.Slice()
	if absent(err) {
		return appended{}, session.ErrNotFound
	}
	if err == nil {
		err = checkLen(reply, 3)
	}
	if err != nil {
		return appended{}, err
	}
	renewed, _ := reply[0].(int64)
	shared, _ := reply[1].(string)
	excess, _ := reply[2].(string)
	return appended{renewed: renewed == 1, shared: session.Parted[session.ThreadID](shared), excess: excess}, nil
}

// batchKeys returns the keys for an append that writes the session and the indexes too.
func (s *Store) batchKeys(b session.Batch) []string {
	t := b.Thread
	keys := append(s.threadKeys(t.ID), s.keys.session(t.Session), s.keys.unlisted(t.Session))
	for _, id := range needed(b) {
		keys = append(keys, s.keys.thread(id))
	}
	for _, p := range b.Places {
		keys = append(keys, s.keys.place(p.Hash))
	}
	return append(keys, s.keys.indexed(nil, allOf(b.Traces))...)
}

// appendArgs returns the arguments of appendScript, including the places if indexes is set.
func (s *Store) appendArgs(b session.Batch, shared []session.ThreadID, indexes bool) []any {
	begins, parent := codec.Begins(b), ""
	var condensations []byte // only a thread's beginning sets them, and there may be many
	if begins {
		condensations = codec.List(b.Thread.Listed())
	}
	if forks(b) && !b.ParentCreated.IsZero() {
		parent = createdSuffix(b.ParentCreated)
	}
	args := []any{
		point(b, b.At), begins, codec.Thread(b.Thread), point(b, b.Thread.Len), condensations,
		session.Joined(shared), s.options.TTL.Milliseconds(), s.lease().Milliseconds(), rand.Text(),
		leftHashes(b.Traces.Lasting),
	}
	args = append(args, joinArgs(b)...)
	entries := s.content.Events(b.Thread.ID, b.Events)
	args = append(args, len(needed(b)), parent, codec.Place(codec.Last(b)), len(b.Traces.First))
	args = append(args, recentOf(b.Traces), s.keys.traces(), codec.InThread(b.Thread.ID), codec.JoinShort(b.Passed), s.keys.places(), len(entries))
	for _, e := range entries {
		args = append(args, e)
	}
	if indexes {
		for _, p := range b.Places {
			args = append(args, codec.Place(p.Place))
		}
	}
	return args
}

// point returns the thread's length together with its creation time, which distinguishes it from a thread with the same id
// that was deleted and began again.
func point(b session.Batch, length int) string {
	return fmt.Sprint(length) + createdSuffix(b.Thread.Created)
}

// createdSuffix returns the end of the points of a thread.
func createdSuffix(created time.Time) string {
	return fmt.Sprintf("@%d.%d", created.Unix(), created.Nanosecond())
}

// pointOf reports whether point belongs to a thread created at the given time, or to any thread if the time is zero.
func pointOf(point string, created time.Time) bool {
	return point != "" && (created.IsZero() || strings.HasSuffix(point, createdSuffix(created)))
}

// forks reports whether b may begin a fork, which needs its parent.
func forks(b session.Batch) bool { return b.At > 0 && b.At == b.Thread.ForkAt && b.Thread.Parent != "" }

// threadKeys returns the keys that every write to a thread touches: its record, its log and the list of traces that it left.
func (s *Store) threadKeys(id session.ThreadID) []string {
	return []string{s.keys.thread(id), s.keys.log(id), s.keys.left(id)}
}

// allOf returns all traces, those that keep the place that they point to last.
func allOf(t session.Traces) []session.Hash { return slices.Concat(t.Lasting, t.Recent, t.First) }

// recentOf returns the recent traces as the scripts expect them.
func recentOf(t session.Traces) []byte { return codec.JoinShort(slices.Concat(t.Recent, t.First)) }
