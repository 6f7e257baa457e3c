package boltstore

import (
	"context"
	"math"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// spare is the part of the cap that an eviction leaves free (one in so many), because it ends with a look at all indexes,
// which should not be needed again at once.
const spare = 16

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
	f := s.newForgetting(math.MaxInt64)
	if err := s.forget(ctx, f, seenBefore(order, before)); err != nil || f.gone == 0 {
		return err
	}
	return s.sweepIndexes(ctx)
}

// evict deletes the threads seen longest ago until the store is below its cap. The newest one stays, however large, with
// all that it needs.
func (s *Store) evict(ctx context.Context) error {
	for {
		size, err := s.sizes()
		if err != nil || !s.full(size) {
			return err
		}
		order, err := s.order()
		if err != nil || len(order) == 0 {
			return err
		}
		f := s.newForgetting(size.logsIn(size.total() - s.options.MaxSize + s.options.MaxSize/spare))
		err = s.forget(ctx, f, seenBefore(order, order[len(order)-1].seen))
		if err != nil || f.gone == 0 {
			return err
		}
		if err := s.sweepIndexes(ctx); err != nil {
			return err
		}
	}
}
