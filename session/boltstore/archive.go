package boltstore

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

const (
	maxPageReads = 10_000   // sessions that are read for one page at most
	afterSession = "after " // begins a cursor, before the id of a session
)

// Sessions implements session.Archive. It lists sessions ordered by id, and waits until everything queued is on disk.
func (s *Store) Sessions(ctx context.Context, q session.SessionQuery) (page session.SessionPage, err error) {
	plain, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	after, isCursor := bytes.CutPrefix(plain, []byte(afterSession))
	if err != nil || !isCursor && q.Cursor != "" {
		return page, session.ErrCursor
	}
	if err := s.flush(ctx); err != nil {
		return page, err
	}
	err = s.view(func(tx *bolt.Tx) error {
		cursor, reads := tx.Bucket(sessions.name()).Cursor(), 0
		var last []byte
		for key, value := cursor.Seek(append(after, 0)); key != nil; key, value = cursor.Next() {
			if reads == maxPageReads || len(page.Sessions) == q.Limit {
				page.Next = base64.RawURLEncoding.EncodeToString(append([]byte(afterSession), last...))
				return nil
			}
			reads++
			ses, err := codec.ParseSession(value)
			if err != nil {
				return fmt.Errorf("session record: %w", err)
			}
			if q.Matches(ses) {
				page.Sessions = append(page.Sessions, ses)
			}
			last = key
		}
		return nil
	})
	return page, err
}

// setting is the prefix of the names given to Set, which separates them from the store's own records in meta.
const setting = "set:"

// Set implements session.Archive. It returns after the fsync.
func (s *Store) Set(ctx context.Context, name string, value []byte) error {
	err := s.change(ctx, true, func(c *change) error {
		if len(value) == 0 {
			c.delete(meta.key(setting + name))
			return nil
		}
		c.put(meta.key(setting+name), bytes.Clone(value))
		return nil
	})
	if err == nil {
		s.updateRecovery()
	}
	return err
}

func (s *Store) Settings(ctx context.Context) (all map[string][]byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = s.view(func(tx *bolt.Tx) error {
		all = settings(tx)
		return nil
	})
	return all, err
}

func settings(tx *bolt.Tx) map[string][]byte {
	all, cursor := map[string][]byte{}, tx.Bucket(meta.name()).Cursor()
	for key, value := cursor.Seek([]byte(setting)); bytes.HasPrefix(key, []byte(setting)); key, value = cursor.Next() {
		all[string(key[len(setting):])] = bytes.Clone(value)
	}
	return all
}
