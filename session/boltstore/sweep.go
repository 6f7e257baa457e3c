package boltstore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

const (
	spare     = 16  // the part of the cap that an eviction leaves free (one in so many), so that it is not needed again at once
	stepFreed = 500 // log entries deleted in one step, about, which holds up all other calls; but a thread goes whole
)

// startSweeper runs until Close.
func (s *Store) startSweeper() {
	if s.options.TTL == 0 && s.options.MaxSize == 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	s.stop = func() { cancel(); <-stopped }
	go func() {
		defer close(stopped)
		s.sweepEvery(ctx, min(max(s.options.TTL/20, time.Minute), time.Hour))
	}()
}

// sweepEvery deletes what has expired, and at once what passes the cap. An error (a full disk, a closing store) leaves
// the rest to the next turn.
func (s *Store) sweepEvery(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		_ = session.Recover(func() error { return s.evict(ctx) })
		select {
		case <-s.crowded:
		case <-ticker.C:
			_ = session.Recover(func() error { return s.expire(ctx) })
			_ = session.Recover(func() error { return s.expireAccounts(ctx) })
		case <-ctx.Done():
			return
		}
	}
}

// expire deletes the threads that were last seen longer ago than the TTL.
func (s *Store) expire(ctx context.Context) error {
	if s.options.TTL == 0 {
		return nil
	}
	before := time.Now().Add(-s.options.TTL)
	order, err := s.order()
	if err != nil {
		return err
	}
	return s.forget(ctx, seenBefore(order, before), math.MaxInt64)
}

// evict deletes the threads seen longest ago until the store is below its cap. The newest one stays, however large, with
// all that it needs.
func (s *Store) evict(ctx context.Context) error {
	size, _, err := s.Size()
	if err != nil || !s.full(size) {
		return err
	}
	order, err := s.order()
	if err != nil || len(order) == 0 {
		return err
	}
	return s.forget(ctx, seenBefore(order, order[len(order)-1].seen), size-s.options.MaxSize+s.options.MaxSize/spare)
}

// candidate is a thread as one look at the file shows it.
type candidate struct {
	id      session.ThreadID
	written time.Time
	seen    time.Time // when it, or a thread that needs it, was last written
	needs   []session.ThreadID
}

// order lists all threads, those seen longest ago first. A thread comes before those that it needs, so deleting
// from the front never takes from a fork what it shares.
func (s *Store) order() ([]*candidate, error) {
	all := map[session.ThreadID]*candidate{}
	err := s.view(func(tx *bolt.Tx) error {
		return tx.Bucket(threads.name()).ForEach(func(_, value []byte) error {
			rec, err := parseRecord(value)
			if err != nil {
				return err
			}
			needs, err := rec.needs()
			all[rec.thread.ID] = &candidate{id: rec.thread.ID, written: rec.written, needs: needs}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return ordered(all), nil
}

// needs lists the threads whose events or summaries a thread shares: its parent, if it is a fork, and those that made
// the condensations which it inherited.
func (r record) needs() ([]session.ThreadID, error) {
	var ids []session.ThreadID
	if r.thread.ForkAt > 0 && r.thread.Parent != "" {
		ids = append(ids, r.thread.Parent)
	}
	list, err := codec.ParseList(r.list)
	for _, c := range list {
		if maker := c.ID.Thread; maker != r.thread.ID && !slices.Contains(ids, maker) {
			ids = append(ids, maker)
		}
	}
	return ids, err
}

// ordered goes from the newest thread to the oldest and puts each behind what it needs; the reverse is the order.
func ordered(all map[session.ThreadID]*candidate) []*candidate {
	newest := slices.SortedFunc(maps.Values(all), func(a, b *candidate) int {
		return cmp.Or(b.written.Compare(a.written), cmp.Compare(a.id, b.id))
	})
	list := make([]*candidate, 0, len(all))
	var keep func(c *candidate, seen time.Time)
	keep = func(c *candidate, seen time.Time) {
		if c == nil || !c.seen.IsZero() {
			return
		}
		c.seen = seen
		for _, id := range c.needs {
			keep(all[id], seen)
		}
		list = append(list, c)
	}
	for _, c := range newest {
		keep(c, c.written)
	}
	slices.Reverse(list)
	return list
}

// seenBefore is the part of an order that was last seen before t.
func seenBefore(order []*candidate, t time.Time) []*candidate {
	n := slices.IndexFunc(order, func(c *candidate) bool { return !c.seen.Before(t) })
	if n < 0 {
		return order
	}
	return order[:n]
}

// forget deletes threads in their order, each whole and in one commit, until enough bytes are free. Between two steps the
// world goes on: a thread that was written to since it was chosen stays, and so does what it needs. After a commit that failed
// nothing more goes: a fork may be back whose parent would be next.
func (s *Store) forget(ctx context.Context, chosen []*candidate, enough int64) error {
	stay := map[session.ThreadID]bool{}
	for len(chosen) > 0 && enough > 0 {
		err := s.change(ctx, true, func(c *change) error {
			for entries := uint64(0); len(chosen) > 0 && enough > 0 && entries < stepFreed; chosen = chosen[1:] {
				rec, err := c.thread(chosen[0].id)
				switch {
				case errors.Is(err, session.ErrNotFound):
				case err != nil || stay[chosen[0].id] || !rec.written.Equal(chosen[0].written):
					needs, _ := rec.needs() // a damaged list has nothing that could be read
					for _, id := range slices.Concat(chosen[0].needs, needs) {
						stay[id] = true
					}
				default:
					entries += rec.thread.Seq
					enough -= forgetThread(c, rec)
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
