package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// logEntry logs an entry of a thread in one commit with the changes that more makes. It returns after the fsync.
func (s *Store) logEntry(ctx context.Context, id session.ThreadID, e session.Event, more func(*change, *record)) error {
	entry := s.content.Event(id, e)
	return s.change(ctx, true, func(c *change) error {
		rec, err := c.thread(id)
		if err != nil {
			return err
		}
		rec.thread.Seq++
		rec.written = time.Now()
		more(c, &rec)
		c.put(threads.key(string(id)), rec.encode())
		c.put(events.entry(id, rec.thread.Seq), entry)
		return nil
	})
}

// Condense implements session.Store. It returns after the fsync.
func (s *Store) Condense(ctx context.Context, id session.ThreadID, c session.Condensation) (session.Condensation, error) {
	c.ID = session.CondensationID{Thread: id}
	summary := s.content.Text(c)
	err := s.logEntry(ctx, id, codec.Condensed(c), func(ch *change, rec *record) {
		c.ID.Seq = rec.thread.Seq
		if c.Answers() {
			rec.thread.Requested = 0
			ch.delete(prepared(id))
		}
		rec.list = codec.Listed(bytes.Clone(rec.list), c)
		ch.put(summaries.entry(id, c.ID.Seq), summary)
	})
	if err != nil {
		return session.Condensation{}, err
	}
	return c, nil
}

// Request implements session.Archive. It returns after the fsync.
func (s *Store) Request(ctx context.Context, id session.ThreadID, at time.Time) error {
	return s.logEntry(ctx, id, session.Event{Kind: session.Requested, Time: at}, func(_ *change, rec *record) {
		rec.thread.Requested = rec.thread.Seq
	})
}

// prepared returns the key of a thread's prepared condensation: an entry number that no logged condensation has.
func prepared(id session.ThreadID) string { return summaries.entry(id, 0) }

func (s *Store) Prepare(ctx context.Context, id session.ThreadID, c session.Condensation) error {
	value := s.content.Prepared(id, c)
	return s.change(ctx, false, func(ch *change) error {
		if _, err := ch.thread(id); err != nil {
			return err
		}
		ch.put(prepared(id), value)
		return nil
	})
}

func (s *Store) Prepared(ctx context.Context, id session.ThreadID) (session.Condensation, error) {
	return one(ctx, s, prepared(id), func(b []byte) (session.Condensation, error) {
		return s.content.ParsePrepared(id, b)
	})
}

// secretName is the key of the secret in meta.
const secretName = "secret"

// Secret implements session.Store. It returns after the fsync.
func (s *Store) Secret(ctx context.Context, proposed session.Secret) (session.Secret, error) {
	if len(proposed) == 0 {
		return nil, errors.New("the proposed secret is empty")
	}
	secret := bytes.Clone(proposed)
	err := s.change(ctx, true, func(c *change) error {
		if stored := c.get(meta.key(secretName)); stored != nil {
			secret = bytes.Clone(stored)
		} else {
			c.put(meta.key(secretName), secret)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.updateRecovery()
	return bytes.Clone(secret), nil
}

func (s *Store) Save(ctx context.Context, id session.ThreadID, more session.Savings) error {
	return s.change(ctx, false, func(c *change) error {
		if c.get(threads.key(string(id))) == nil {
			return session.ErrNotFound
		}
		sum, err := codec.ParseSavings(c.get(savings.key(string(id))))
		if err != nil {
			return fmt.Errorf("savings record: %w", err)
		}
		sum.Add(more)
		c.put(savings.key(string(id)), codec.Savings(sum))
		return nil
	})
}

func (s *Store) Saved(ctx context.Context, id session.ThreadID) (session.Savings, error) {
	return query(ctx, s, func(r *reader) (session.Savings, error) { return codec.ParseSavings(r.get(savings.key(string(id)))) })
}

// Lock implements session.Store. The lock is in memory, because the file belongs to one process.
func (s *Store) Lock(ctx context.Context, id session.ThreadID, ttl time.Duration) (session.Lease, error) {
	if err := ctx.Err(); err != nil {
		return session.Lease{}, err
	}
	if ttl <= 0 {
		return session.Lease{}, fmt.Errorf("ttl of %v: it must be positive", ttl)
	}
	mine := new(time.Time)
	hold := func(context.Context) error {
		s.lockMu.Lock()
		defer s.lockMu.Unlock()
		now := time.Now()
		if held := s.locks[id]; held != nil && held != mine && now.Before(*held) {
			return session.ErrLocked
		}
		*mine = now.Add(ttl)
		s.locks[id] = mine
		return nil
	}
	if err := hold(ctx); err != nil {
		return session.Lease{}, err
	}
	release := func() {
		s.lockMu.Lock()
		defer s.lockMu.Unlock()
		if s.locks[id] == mine {
			delete(s.locks, id)
		}
	}
	return session.Lease{Renew: hold, Release: release}, nil
}
