package boltstore

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// Condense implements session.Store. It returns after the fsync.
func (s *Store) Condense(ctx context.Context, id session.ThreadID, c session.Condensation) (session.Condensation, error) {
	c.ID = session.CondensationID{Thread: id}
	summary, entry := s.content.Text(c), s.content.Event(id, codec.Condensed(c))
	err := s.change(ctx, true, func(ch *change) error {
		rec, err := ch.thread(id)
		if err != nil {
			return err
		}
		rec.thread.Seq++
		c.ID.Seq = rec.thread.Seq
		if c.Answers() {
			rec.thread.Requested = 0
		}
		rec.list = codec.Listed(bytes.Clone(rec.list), c)
		rec.written = time.Now()
		ch.put(threads.key(string(id)), rec.encode())
		ch.put(events.entry(id, c.ID.Seq), entry)
		ch.put(summaries.entry(id, c.ID.Seq), summary)
		if !c.Aside() {
			ch.delete(prepared(id))
		}
		return nil
	})
	if err != nil {
		return session.Condensation{}, err
	}
	return c, nil
}

// prepared is where a condensation is kept that is not logged: before the summaries of those that are.
func prepared(id session.ThreadID) string { return summaries.entry(id, 0) }

// Prepare implements session.Store.
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

// Prepared implements session.Store.
func (s *Store) Prepared(ctx context.Context, id session.ThreadID) (session.Condensation, error) {
	return one(ctx, s, prepared(id), func(b []byte) (session.Condensation, error) { return s.content.ParsePrepared(id, b) })
}

// Secret implements session.Store. It returns after the fsync.
func (s *Store) Secret(ctx context.Context, proposed session.Secret) (session.Secret, error) {
	if len(proposed) == 0 {
		return nil, errors.New("the proposed one is empty")
	}
	secret := bytes.Clone(proposed)
	err := s.change(ctx, true, func(c *change) error {
		if stored := c.get(meta.key("secret")); stored != nil {
			secret = bytes.Clone(stored)
		} else {
			c.put(meta.key("secret"), secret)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return bytes.Clone(secret), nil
}
