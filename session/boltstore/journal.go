package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// A session's journal is a record with the number of its entries, followed by the entries. It is deleted with its session. Names and totals
// begin with the time at which they expire. The totals of the period "" are the numbers of the writers' last batches.

// WriteJournal implements session.Journal. As with an append, a crash may lose the newest batches.
func (s *Store) WriteJournal(ctx context.Context, b session.JournalBatch) error {
	return s.change(ctx, false, func(c *change) error {
		if done, err := c.isWritten(b); done || err != nil {
			return err
		}
		for i := range b.Entries {
			if err := c.addEntry(&b.Entries[i]); err != nil {
				return err
			}
		}
		for i := range b.Totals {
			if err := c.addTotal(&b.Totals[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// writersFor is how long the last batch of a writer is remembered.
const writersFor = 24 * time.Hour

// isWritten reports whether a batch was written already, and notes that it is now.
func (c *change) isWritten(b session.JournalBatch) (bool, error) {
	last, number := totals.prefix("")+b.Writer, int64(b.Number) //nolint:gosec // the same 64 bits
	written, err := parseTotal(c.get(last))
	if err != nil || len(written) > 0 && written[0] == number {
		return true, err
	}
	c.put(last, append(expiry(writersFor), numbers(number)...))
	return false, nil
}

func (c *change) addEntry(e *session.JournalEntry) error {
	if c.get(sessions.key(string(e.Session))) == nil {
		return nil
	}
	n, err := c.journalLen(e.Session)
	if err != nil {
		return err
	}
	n++
	c.put(journals.entry(session.ThreadID(e.Session), n), slices.Concat(e.Name[:nameLen], e.Value))
	c.put(journals.prefix(string(e.Session)), binary.AppendUvarint(nil, n))
	if n > session.MaxJournal {
		c.deleteEntry(e.Session, n-session.MaxJournal)
	}
	if e.Name != (session.Hash{}) {
		c.put(entryName(e.Name[:]), append(expiry(session.JournalNamesFor), e.Session...))
	}
	return nil
}

// nameLen is how many bytes of a name precede an entry, and find it.
const nameLen = 8

func entryName(name []byte) string { return names.key(string(name[:nameLen])) }

// deleteEntry deletes an entry of a session's journal with its name, unless another session has that by now. It returns the bytes freed.
func (c *change) deleteEntry(id session.SessionID, n uint64) (freed int64) {
	key := journals.entry(session.ThreadID(id), n)
	if stored := c.get(key); len(stored) >= nameLen {
		name := entryName(stored)
		if owner := c.get(name); len(owner) > expiryLen && session.SessionID(owner[expiryLen:]) == id {
			freed = c.delete(name)
		}
	}
	return freed + c.delete(key)
}

// journalLen returns the number of the newest entry of a session's journal, 0 if there is none.
func (r *reader) journalLen(id session.SessionID) (uint64, error) {
	stored := r.get(journals.prefix(string(id)))
	if stored == nil {
		return 0, nil
	}
	n, size := binary.Uvarint(stored)
	if size <= 0 {
		return 0, codec.ErrCorrupt
	}
	return n, nil
}

func (s *Store) ReadJournal(ctx context.Context, id session.SessionID, before uint64, limit int) ([]session.JournalEntry, error) {
	return query(ctx, s, func(r *reader) (page []session.JournalEntry, err error) {
		n, err := r.journalLen(id)
		if before > 0 {
			n = min(n, before-1)
		}
		for ; err == nil && n > 0 && len(page) < limit; n-- {
			stored := r.get(journals.entry(session.ThreadID(id), n))
			if len(stored) < nameLen {
				break
			}
			page = append(page, session.JournalEntry{Session: id, Number: n, Value: bytes.Clone(stored[nameLen:])})
		}
		return page, err
	})
}

func (s *Store) FindJournal(ctx context.Context, name session.Hash) (session.SessionID, error) {
	return one(ctx, s, entryName(name[:]), func(stored []byte) (session.SessionID, error) {
		until, err := expires(stored)
		if err == nil && !time.Now().Before(until) {
			err = session.ErrNotFound
		}
		if err != nil {
			return "", err
		}
		return session.SessionID(stored[expiryLen:]), nil
	})
}

// deleteJournal deletes a session's journal and returns the number of bytes freed.
func deleteJournal(c *change, id session.SessionID) (freed int64) {
	n, _ := c.journalLen(id) // 0 if it is damaged
	for ; n > 0; n-- {
		size := c.deleteEntry(id, n)
		if size == 0 {
			break
		}
		freed += size
	}
	return freed + c.delete(journals.prefix(string(id)))
}

func totalKey(t *session.Total) string { return totals.prefix(t.Period) + t.Row }

func (c *change) addTotal(t *session.Total) error {
	sum, err := parseTotal(c.get(totalKey(t)))
	if err != nil {
		return err
	}
	for len(sum) < len(t.Values) {
		sum = append(sum, 0)
	}
	for i, n := range t.Values {
		sum[i] += n
	}
	c.put(totalKey(t), append(expiry(session.TotalsFor), numbers(sum...)...))
	return nil
}

// parseTotal returns the integers of a row, nil if there is none or it has expired.
func parseTotal(stored []byte) (values []int64, err error) {
	if stored == nil {
		return nil, nil
	}
	if until, err := expires(stored); err != nil || !time.Now().Before(until) {
		return nil, err
	}
	for rest := stored[expiryLen:]; len(rest) > 0; {
		n, size := binary.Varint(rest)
		if size <= 0 {
			return nil, codec.ErrCorrupt
		}
		values, rest = append(values, n), rest[size:]
	}
	return values, nil
}

func (s *Store) Totals(ctx context.Context, period string) ([]session.Total, error) {
	return query(ctx, s, func(r *reader) (all []session.Total, err error) {
		prefix := totals.prefix(period)
		for _, key := range r.keysWithPrefix(prefix) {
			values, err := parseTotal(r.get(key))
			if err != nil {
				return nil, err
			}
			if values != nil {
				all = append(all, session.Total{Period: period, Row: strings.TrimPrefix(key, prefix), Values: values})
			}
		}
		return all, nil
	})
}

const expiryLen = 8

// expiry returns the time at which a record expires that is kept for some time, encoded.
func expiry(keep time.Duration) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(time.Now().Add(keep).Unix())) //nolint:gosec // a time
}

// expires returns when a record that begins with its expiry expires.
func expires(stored []byte) (time.Time, error) {
	if len(stored) < expiryLen {
		return time.Time{}, codec.ErrCorrupt
	}
	return time.Unix(int64(binary.BigEndian.Uint64(stored)), 0), nil //nolint:gosec // a time
}

// expireJournal deletes names and totals that have expired. It collects them first, so that other calls wait only for the deletion.
func (s *Store) expireJournal(ctx context.Context) error {
	var gone []string
	err := s.view(func(tx *bolt.Tx) error {
		for _, b := range [...]bucket{names, totals} {
			err := tx.Bucket(b.name()).ForEach(func(name, stored []byte) error {
				if until, err := expires(stored); err != nil || until.Before(time.Now()) {
					gone = append(gone, b.key(string(name)))
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for some := range slices.Chunk(gone, stepFreed) {
		err := s.change(ctx, false, func(c *change) error {
			for _, key := range some {
				if until, err := expires(c.get(key)); err != nil || until.Before(time.Now()) {
					c.delete(key)
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
