package boltstore

import (
	"context"
	"fmt"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

type lock struct{ until time.Time }

// Lock implements session.Store. The file belongs to one process, so the lock is in memory.
func (s *Store) Lock(ctx context.Context, id session.ThreadID, ttl time.Duration) (session.Lease, error) {
	if err := ctx.Err(); err != nil {
		return session.Lease{}, err
	}
	if ttl <= 0 {
		return session.Lease{}, fmt.Errorf("a time of %v", ttl)
	}
	s.locking.Lock()
	defer s.locking.Unlock()
	now := time.Now()
	if held := s.locks[id]; held != nil && now.Before(held.until) {
		return session.Lease{}, session.ErrLocked
	}
	mine := &lock{until: now.Add(ttl)}
	s.locks[id] = mine
	return session.Lease{
		Renew:   func(context.Context) error { return s.renew(id, mine, ttl) },
		Release: func() { s.unlock(id, mine) },
	}, nil
}

func (s *Store) renew(id session.ThreadID, mine *lock, ttl time.Duration) error {
	s.locking.Lock()
	defer s.locking.Unlock()
	if s.locks[id] != mine {
		return session.ErrLocked
	}
	mine.until = time.Now().Add(ttl)
	return nil
}

// unlock leaves a lock alone that was taken by another caller after mine had expired.
func (s *Store) unlock(id session.ThreadID, mine *lock) {
	s.locking.Lock()
	defer s.locking.Unlock()
	if s.locks[id] == mine {
		delete(s.locks, id)
	}
}
