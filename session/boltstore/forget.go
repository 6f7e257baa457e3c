package boltstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

const (
	sweepEntries = 1000 // deleted in one step, which holds up all other calls; but a thread goes whole
	sweepQueue   = 8000 // deletions after which the sweeper waits for the disk: a large commit holds up who waits for it
)

// quota counts deletions.
type quota int

// spent reports whether it is time to wait, and begins anew then.
func (q *quota) spent(n uint64) bool {
	if *q += quota(n); *q < sweepQueue { //nolint:gosec // entries of one step
		return false
	}
	*q = 0
	return true
}

// forgetting deletes threads in their order, each whole and in one commit, until enough is free. Between two steps the
// world goes on: a thread that was written to since it was chosen stays, and so does what it needs.
type forgetting struct {
	enough int64 // bytes of logs
	freed  int64
	gone   int // threads
	stay   map[session.ThreadID]bool
	losses int // of the store when it began
}

func (s *Store) newForgetting(enough int64) *forgetting {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return &forgetting{enough: enough, stay: map[session.ThreadID]bool{}, losses: s.pending.losses}
}

func (s *Store) forget(ctx context.Context, f *forgetting, chosen []*candidate) error {
	var q quota
	for len(chosen) > 0 && f.freed < f.enough {
		n, entries := stepOf(chosen)
		err := s.change(ctx, q.spent(entries), func(c *change) error { return f.step(c, chosen[:n]) })
		if err != nil {
			return err
		}
		chosen = chosen[n:]
	}
	return s.flush(ctx)
}

// stepOf is how many of the chosen one step deletes, and how many entries they have.
func stepOf(chosen []*candidate) (n int, entries uint64) {
	for _, c := range chosen {
		if n > 0 && entries+c.entries > sweepEntries {
			break
		}
		n, entries = n+1, entries+c.entries
	}
	return n, entries
}

// step must not go on after a commit failed: a fork may be back whose parent would go next.
func (f *forgetting) step(c *change, chosen []*candidate) error {
	if c.pending.losses != f.losses {
		return fmt.Errorf("%w: a commit failed", session.ErrUnavailable)
	}
	for _, one := range chosen {
		if f.freed >= f.enough {
			break
		}
		stored := c.get(threads.key(string(one.id)))
		if stored == nil {
			continue
		}
		rec, err := parseRecord(stored)
		if err != nil || f.stay[one.id] || !rec.written.Equal(one.written) {
			f.keep(one, rec)
			continue
		}
		f.freed += forgetThread(c, rec)
		f.gone++
	}
	return nil
}

// keep goes by what the thread needed when it was chosen, and by what it needs now.
func (f *forgetting) keep(one *candidate, now record) {
	needs, _ := now.needs() // a damaged list has nothing that could be read
	for _, id := range slices.Concat(one.needs, needs) {
		f.stay[id] = true
	}
}

// forgetThread gives the bytes of the log that were freed.
func forgetThread(c *change, rec record) (freed int64) {
	t := rec.thread
	forget := func(key string) {
		freed += c.cost(key)
		c.delete(key)
	}
	forget(prepared(t.ID))
	list, _ := codec.ParseList(rec.list) // a damaged one has no summaries that could be read
	for _, condensation := range list {
		if condensation.ID.Thread == t.ID {
			forget(summaries.entry(t.ID, condensation.ID.Seq))
		}
	}
	for seq := uint64(1); seq <= t.Seq; seq++ {
		forget(events.entry(t.ID, seq))
	}
	c.deleteAny(savings.key(string(t.ID)))
	forget(threads.key(string(t.ID)))
	leave(c, t)
	return freed
}

// leave takes t off its session's record, and deletes that with its last thread.
func leave(c *change, t session.Thread) {
	key := sessions.key(string(t.Session))
	ses, err := codec.ParseSession(c.get(key))
	if err != nil {
		return // it has none
	}
	c.deleteAny(unlisted.pair(ses.ID, t.ID))
	ses.Threads = slices.DeleteFunc(ses.Threads, func(id session.ThreadID) bool { return id == t.ID })
	if len(ses.Threads) == 0 {
		c.delete(key)
		return
	}
	c.put(key, codec.Session(ses))
}
