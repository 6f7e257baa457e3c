package boltstore

import (
	"context"
	"fmt"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

type lock struct{ until time.Time }

// Lock implements session.Store. The file belongs to one process, so the lock is in memory.
func (s *Store) Lock(ctx context.Context, id session.ThreadID, ttl time.Duration) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if ttl <= 0 {
		return nil, fmt.Errorf("a time of %v", ttl)
	}
	s.locking.Lock()
	defer s.locking.Unlock()
	now := time.Now()
	if held := s.locks[id]; held != nil && now.Before(held.until) {
		return nil, session.ErrLocked
	}
	mine := &lock{until: now.Add(ttl)}
	s.locks[id] = mine
	return func() { s.unlock(id, mine) }, nil
}

// unlock leaves a lock alone that was taken by somebody else after mine had expired.
func (s *Store) unlock(id session.ThreadID, mine *lock) {
	s.locking.Lock()
	defer s.locking.Unlock()
	if s.locks[id] == mine {
		delete(s.locks, id)
	}
}
