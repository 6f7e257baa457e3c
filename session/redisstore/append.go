package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// Append implements session.Store. It is one round trip; one more to begin a fork, and one to renew what keeps others alive,
// now and then. In a Cluster the indexes, which live in other slots, take a second one, and so they do in a batch that would
// keep a single server from all other calls. An error of a later one leaves the batch appended.
func (s *Store) Append(ctx context.Context, b session.Batch) error {
	if err := codec.CheckIDs(b.Thread.ID, b.Thread.Session); err != nil {
		return err
	}
	shared, err := s.sharedBy(ctx, b)
	if err != nil {
		return err
	}
	if s.apart() || len(b.Places)+len(b.Traces) > wholeMost {
		return s.appendApart(ctx, b, shared)
	}
	logged, err := s.appendScripted(ctx, script{appendScript, s.wholeKeys(b), s.appendArgs(b, shared, true)})
	if s.crossed(err) {
		return s.appendApart(ctx, b, shared)
	}
	if err == nil {
		err = s.keep(ctx, b, logged)
	}
	return staleIfAbsent(err, b)
}

// wholeMost is how many places and traces of a batch are written at once with it: some milliseconds' worth.
const wholeMost = 2048

// logged is what an append gives: whether the thread's lease was renewed, and the threads whose logs it shares, which are
// those of the batch if it begins.
type logged struct {
	renewed bool
	shared  []session.ThreadID
}

func (s *Store) appendScripted(ctx context.Context, c script) (logged, error) {
	reply, err := run(ctx, s, c, (*redis.Cmd).Slice)
	if err != nil {
		return logged{}, err
	}
	return parseLogged(reply)
}

func parseLogged(reply []any) (logged, error) {
	if err := replied(reply, 2); err != nil {
		return logged{}, err
	}
	renewed, _ := reply[0].(int64)
	shared, _ := reply[1].(string)
	return logged{renewed: renewed == 1, shared: session.Parted[session.ThreadID](shared)}, nil
}

func staleIfAbsent(err error, b session.Batch) error {
	if errors.Is(err, session.ErrNotFound) {
		return fmt.Errorf("%w: the thread is not at %d, or what it shares is gone", session.ErrStale, b.At)
	}
	return err
}

// wholeKeys names all that a batch touches.
func (s *Store) wholeKeys(b session.Batch) []string {
	t := b.Thread
	keys := make([]string, 0, 6+len(b.Places)+len(b.Traces))
	keys = append(keys, s.written(t.ID)...)
	keys = append(keys, s.keys.session(t.Session), s.keys.unlisted(t.Session), s.keys.thread(t.Parent))
	for _, p := range b.Places {
		keys = append(keys, s.keys.place(p.Hash))
	}
	return append(keys, s.keys.indexed(nil, b.Traces)...)
}

// appendArgs are those of the append script; with what goes into the indexes if they are written at once.
func (s *Store) appendArgs(b session.Batch, shared []session.ThreadID, whole bool) []any {
	begins, needs, parent := 0, 0, ""
	var condensations []byte // they count when the thread begins, and may be many
	if codec.Begins(b) {
		begins, condensations = 1, codec.List(b.Thread.Listed())
	}
	if forks(b) {
		needs = 1
	}
	if !b.ParentCreated.IsZero() {
		parent = began(b.ParentCreated)
	}
	args := make([]any, 0, 21+len(b.Events)+len(b.Places))
	args = append(args, point(b, b.At), begins, codec.Thread(b.Thread), point(b, b.Thread.Len), condensations,
		session.Joined(shared), s.options.TTL.Milliseconds(), s.lease().Milliseconds(), token(), joinHashes(b.Traces))
	args = append(args, joinArgs(b)...)
	args = append(args, needs, parent, codec.Place(codec.Last(b)), len(b.Events))
	for _, e := range b.Events {
		args = append(args, s.content.Event(b.Thread.ID, e))
	}
	if whole {
		for _, p := range b.Places {
			args = append(args, codec.Place(p.Place))
		}
	}
	return args
}

// token makes a write known to the server, should it come twice.
func token() []byte {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // never fails
	return b
}

// point is how far a thread has come, and which one of its name it is: one that was deleted may have begun anew since.
func point(b session.Batch, length int) string {
	return fmt.Sprint(length) + began(b.Thread.Created)
}

func began(created time.Time) string {
	return fmt.Sprintf("@%d.%d", created.Unix(), created.Nanosecond())
}

// is reports whether the point that was read is of the thread of its name that began then; any, if that is not known.
func is(point string, created time.Time) bool {
	return point != "" && (created.IsZero() || strings.HasSuffix(point, began(created)))
}

// forks reports whether b may begin a fork, which needs its parent.
func forks(b session.Batch) bool { return b.At > 0 && b.At == b.Thread.ForkAt && b.Thread.Parent != "" }

// written names what every write of a thread touches: its record, its log and the list of traces that it left.
func (s *Store) written(id session.ThreadID) []string {
	return []string{s.keys.thread(id), s.keys.log(id), s.keys.left(id)}
}

func joinHashes(hashes []session.Hash) []byte {
	all := make([]byte, 0, len(hashes)*len(session.Hash{}))
	for _, h := range hashes {
		all = append(all, h[:]...)
	}
	return all
}
