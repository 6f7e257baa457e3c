package boltstore

import (
	"slices"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// candidate is a thread as one look at the file shows it.
type candidate struct {
	id      session.ThreadID
	written time.Time
	seen    time.Time // when it, or a thread that needs it, was last written
	entries uint64
	needs   []session.ThreadID
}

// order lists all threads, those seen longest ago first. A thread comes before those that it needs, so deleting
// from the front never takes from a fork what it shares.
func (s *Store) order() ([]*candidate, error) {
	all := map[session.ThreadID]*candidate{}
	err := s.view(func(tx *bolt.Tx) error {
		return tx.Bucket(threads.name()).ForEach(func(_, value []byte) error {
			c, err := parseCandidate(value)
			if err != nil {
				return err
			}
			all[c.id] = c
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return ordered(all), nil
}

func parseCandidate(value []byte) (*candidate, error) {
	rec, err := parseRecord(value)
	if err != nil {
		return nil, err
	}
	needs, err := rec.needs()
	if err != nil {
		return nil, err
	}
	return &candidate{id: rec.thread.ID, written: rec.written, entries: rec.thread.Seq, needs: needs}, nil
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
	newest := make([]*candidate, 0, len(all))
	for _, c := range all {
		newest = append(newest, c)
	}
	slices.SortFunc(newest, func(a, b *candidate) int {
		if n := b.written.Compare(a.written); n != 0 {
			return n
		}
		return strings.Compare(string(a.id), string(b.id))
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
