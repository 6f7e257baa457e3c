package boltstore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

const (
	spareShare = 16  // an eviction leaves 1/16 of the cap free, so that the next one is not due at once
	stepFreed  = 500 // log entries deleted in one step, which blocks all other calls; a thread with more is still deleted in one step
)

// startSweeper starts the goroutine that deletes threads, if there is a TTL or a cap. It runs until Close.
func (s *Store) startSweeper() {
	if s.options.TTL == 0 && s.options.MaxSize == 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var sweeper sync.WaitGroup
	sweeper.Go(func() { s.sweepEvery(ctx, min(max(s.options.TTL/20, time.Minute), time.Hour)) })
	s.stopSweeper = func() {
		cancel()
		sweeper.Wait()
	}
}

// sweepEvery deletes expired threads at each interval, and threads above the cap as soon as it is exceeded. After an error
// (a full disk, a closing store) the next round tries again.
func (s *Store) sweepEvery(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		_ = session.Recover(func() error { return s.evict(ctx) })
		select {
		case <-s.full:
		case <-ticker.C:
			_ = session.Recover(func() error { return s.expire(ctx) })
			_ = session.Recover(func() error { return s.expireAccounts(ctx) })
			_ = session.Recover(func() error { return s.expireJournal(ctx) })
		case <-ctx.Done():
			return
		}
	}
}

// expire deletes the threads that were last seen more than the TTL ago.
func (s *Store) expire(ctx context.Context) error {
	if s.options.TTL == 0 {
		return nil
	}
	before := time.Now().Add(-s.options.TTL)
	order, err := s.order()
	if err != nil {
		return err
	}
	return s.deleteThreads(ctx, seenBefore(order, before), math.MaxInt64)
}

// evict deletes the threads that were seen longest ago until the store is below its cap. It keeps the newest thread,
// however large, and the threads that this one needs.
func (s *Store) evict(ctx context.Context) error {
	size, _, err := s.Size()
	if err != nil || !s.exceeds(size) {
		return err
	}
	order, err := s.order()
	if err != nil || len(order) == 0 {
		return err
	}
	newest := order[len(order)-1].seen
	excess := size - s.options.MaxSize + s.options.MaxSize/spareShare
	return s.deleteThreads(ctx, seenBefore(order, newest), excess)
}

// candidate is a thread that may be deleted.
type candidate struct {
	id      session.ThreadID
	written time.Time
	seen    time.Time // last write of this thread or of a thread that needs it
	needs   []session.ThreadID
	parent  session.ThreadID // the thread in needs whose whole history it needs; empty unless it is a fork
	whole   bool             // everything that it needs was visited
}

// order returns all threads, those seen longest ago first. A thread comes before those that it needs, so that deleting from
// the front never deletes a thread that a fork still shares.
func (s *Store) order() ([]*candidate, error) {
	all := map[session.ThreadID]*candidate{}
	err := s.view(func(tx *bolt.Tx) error {
		return tx.Bucket(threads.name()).ForEach(func(_, value []byte) error {
			rec, err := parseRecord(value)
			if err != nil {
				return err
			}
			needs, err := rec.needs()
			all[rec.thread.ID] = &candidate{id: rec.thread.ID, written: rec.written, needs: needs, parent: rec.parent()}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return ordered(all), nil
}

// parent returns the thread that a fork was forked from, empty for other threads.
func (r record) parent() session.ThreadID {
	if r.thread.ForkAt > 0 {
		return r.thread.Parent
	}
	return ""
}

// needs returns the threads whose events or summaries a thread shares: its parent, if it is a fork, those that store its content, and the
// makers of the condensations that it inherited.
func (r record) needs() ([]session.ThreadID, error) {
	ids := slices.Clone(r.thread.Shares)
	if parent := r.parent(); parent != "" {
		ids = append(ids, parent)
	}
	list, err := codec.ParseList(r.list)
	for _, c := range list {
		if maker := c.ID.Thread; maker != r.thread.ID && !slices.Contains(ids, maker) {
			ids = append(ids, maker)
		}
	}
	return ids, err
}

// ordered visits the threads from the newest to the oldest, lists each one after those that it needs, and returns the list reversed. It
// sets candidate.seen: a thread lives as long as those that need it. If a thread is needed only for its own entries or summaries, this
// extends to its ancestors, but not to the other threads that it needs. Otherwise, if each thread shares content of the one before it, no
// thread of the session would ever expire.
func ordered(all map[session.ThreadID]*candidate) []*candidate {
	newest := slices.SortedFunc(maps.Values(all), func(a, b *candidate) int {
		return cmp.Or(b.written.Compare(a.written), cmp.Compare(a.id, b.id))
	})
	list := make([]*candidate, 0, len(all))
	var visit func(c *candidate, seen time.Time, whole bool)
	visit = func(c *candidate, seen time.Time, whole bool) {
		if c == nil || c.whole || !whole && !c.seen.IsZero() {
			return
		}
		listed := !c.seen.IsZero()
		if !listed {
			c.seen = seen
		}
		c.whole = whole
		for _, id := range c.needs {
			if isParent := id == c.parent; whole || isParent {
				visit(all[id], seen, whole && isParent)
			}
		}
		if !listed {
			list = append(list, c)
		}
	}
	for _, c := range newest {
		visit(c, c.written, true)
	}
	slices.Reverse(list)
	return list
}

// seenBefore returns the front of an order: the threads last seen before t.
func seenBefore(order []*candidate, t time.Time) []*candidate {
	n := slices.IndexFunc(order, func(c *candidate) bool { return !c.seen.Before(t) })
	if n < 0 {
		return order
	}
	return order[:n]
}

// deleteThreads deletes threads in order, each completely and in one commit, until enough bytes are free. Other calls run
// between two steps. A thread that was written to since it was chosen stays, and so do those that it needs. deleteThreads
// stops after a failed commit, because that may have restored a fork whose parent would be next.
func (s *Store) deleteThreads(ctx context.Context, chosen []*candidate, enough int64) error {
	keep := map[session.ThreadID]bool{}
	for len(chosen) > 0 && enough > 0 {
		err := s.change(ctx, true, func(c *change) error {
			for entries := uint64(0); len(chosen) > 0 && enough > 0 && entries < stepFreed; chosen = chosen[1:] {
				next := chosen[0]
				rec, err := c.thread(next.id)
				switch {
				case errors.Is(err, session.ErrNotFound):
				case err != nil || keep[next.id] || !rec.written.Equal(next.written):
					needs, _ := rec.needs() // none can be read from a damaged list
					for _, id := range slices.Concat(next.needs, needs) {
						keep[id] = true
					}
				default:
					entries += rec.thread.Seq
					enough -= deleteThread(c, rec)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
