package boltstore

import (
	"context"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// Save implements session.Store.
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

// Saved implements session.Store.
func (s *Store) Saved(ctx context.Context, id session.ThreadID) (out session.Savings, err error) {
	err = s.read(ctx, func(r *reader) (err error) {
		out, err = codec.ParseSavings(r.get(savings.key(string(id))))
		return err
	})
	return out, err
}
