// Package journal records what requests were and what they cost. It is handed the record of each request at its end, and writes them to the
// store in the background, many at once.
package journal

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/internal/lru"
	"github.com/dewpoint-proxy/dewpoint/session"
)

const (
	linger   = 300 * time.Millisecond // how long a record may wait for others to be written together with it
	maxBatch = 500                    // entries in one write
	maxQueue = 20_000                 // steps that wait for a store that cannot be reached; about 10 MB
)

// Options are those of a Journal. All are required.
type Options struct {
	Store   session.Journal
	Timeout time.Duration                         // of one write
	Lost    func(op string)                       // is called if records are lost, or could not be written yet
	Missed  func(tenant string, why account.Miss) // is called for each request whose prompt upstream did not read from its cache as far as it could
	Now     func() time.Time
}

// Journal records steps. It is safe for concurrent use.
type Journal struct {
	o      Options
	writer string

	mu      sync.Mutex // guards the fields below
	queue   []account.Step
	totals  map[account.Key]*account.Sums // that are not written yet
	clients account.Clients
	last    lru.Cache[session.ThreadID, account.Sent] // newest request of each thread; has its own lock
	due     *time.Timer                               // runs flushLater
	waits   bool                                      // it is set
	closed  bool                                      // it is not set any more

	writing sync.Mutex // held by a write; guards number and failed
	number  uint64
	failed  *session.JournalBatch // that could not be written; nil: none
}

// New returns an empty journal.
func New(o Options) *Journal {
	j := &Journal{o: o, writer: rand.Text()[:10], last: lru.New[session.ThreadID, account.Sent](maxThreads)}
	j.due = time.AfterFunc(time.Hour, j.flushLater)
	j.due.Stop()
	return j
}

// add queues a step. If the store has not taken any for long, it is lost.
func (j *Journal) add(s account.Step) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.queue) == maxQueue {
		j.o.Lost("journal_queue_full")
		return
	}
	j.queue = append(j.queue, s)
	j.schedule()
}

// schedule makes sure that what waits is written soon. The caller has locked j.mu.
func (j *Journal) schedule() {
	if !j.waits && !j.closed {
		j.waits = true
		j.due.Reset(linger)
	}
}

// flushLater writes what is queued, and tries again later if that fails.
func (j *Journal) flushLater() {
	j.mu.Lock()
	j.waits = false
	j.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), j.o.Timeout)
	defer cancel()
	if err := j.Flush(ctx); err != nil {
		j.o.Lost("journal")
		j.mu.Lock()
		defer j.mu.Unlock()
		if !j.closed {
			j.waits = true
			j.due.Reset(10 * linger)
		}
	}
}

// Flush writes everything that was recorded before the call.
func (j *Journal) Flush(ctx context.Context) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	for {
		b := j.next()
		if b == nil {
			return nil
		}
		if err := j.o.Store.WriteJournal(ctx, *b); err != nil {
			j.failed = b
			return fmt.Errorf("write journal: %w", err)
		}
		j.failed = nil
	}
}

// next returns the batch to be written next: the one that could not be written, or another from the queue; nil if there is nothing to write.
func (j *Journal) next() *session.JournalBatch {
	if j.failed != nil {
		return j.failed
	}
	steps, totals := j.take()
	if len(steps) == 0 && len(totals) == 0 {
		return nil
	}
	j.number++
	b := &session.JournalBatch{Writer: j.writer, Number: j.number}
	for key, sums := range totals {
		b.Totals = append(b.Totals, key.Total(sums))
	}
	for i := range steps {
		s := &steps[i]
		b.Entries = append(b.Entries, session.JournalEntry{Session: s.Session, Name: nameOf(s.Tenant, s.Request), Value: account.Pack(s)})
	}
	return b
}

// take takes steps from the queue, and all totals.
func (j *Journal) take() ([]account.Step, map[account.Key]*account.Sums) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := min(len(j.queue), maxBatch)
	steps := j.queue[:n:n]
	if j.queue = j.queue[n:]; len(j.queue) == 0 {
		j.queue = nil
	}
	totals := j.totals
	j.totals = nil
	return steps, totals
}

// nameOf returns the name under which the store finds a request of a tenant. Clients choose ids, so those of tenants may be the same.
func nameOf(tenant, request string) session.Hash {
	return sha256.Sum256([]byte("request " + request + " of " + tenant)) // an id has no spaces
}

// Close writes what is queued, within the time of one write even if ctx has ended: what came before may have used up the time of a shutdown.
// Nothing may be recorded any more.
func (j *Journal) Close(ctx context.Context) error {
	j.mu.Lock()
	j.closed = true
	j.due.Stop()
	j.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.o.Timeout)
	defer cancel()
	return j.Flush(ctx)
}

// Steps reads the steps of a session with numbers below before, or the newest if before is 0: at most limit of them, newest first. It
// includes what this process has not written yet. Steps of another version of the program may be left out.
func (j *Journal) Steps(ctx context.Context, id session.SessionID, before uint64, limit int) (steps []account.Step, err error) {
	if err := j.Flush(ctx); err != nil {
		return nil, err
	}
	entries, err := j.o.Store.ReadJournal(ctx, id, before, limit)
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	for i := range entries {
		if s, err := unpack(&entries[i]); err == nil {
			steps = append(steps, s)
		}
	}
	return steps, nil
}

func unpack(e *session.JournalEntry) (account.Step, error) {
	s, err := account.Unpack(e.Value)
	if err != nil {
		return s, err
	}
	s.Number, s.Session = e.Number, e.Session
	return s, nil
}

// pageSize is how many entries are read at a time to find a request.
const pageSize = 512

// Step reads the newest step of a tenant with a request id: X-Dewpoint-Request-Id. The error wraps session.ErrNotFound if there is none.
func (j *Journal) Step(ctx context.Context, tenant, request string) (account.Step, error) {
	if err := j.Flush(ctx); err != nil {
		return account.Step{}, err
	}
	id, err := j.o.Store.FindJournal(ctx, nameOf(tenant, request))
	if err != nil {
		return account.Step{}, fmt.Errorf("find request: %w", err)
	}
	for before := uint64(0); ; {
		entries, err := j.o.Store.ReadJournal(ctx, id, before, pageSize)
		if err != nil {
			return account.Step{}, fmt.Errorf("read journal: %w", err)
		}
		for i := range entries {
			if s, err := unpack(&entries[i]); err == nil && s.Request == request {
				return s, nil
			}
		}
		if len(entries) < pageSize {
			return account.Step{}, fmt.Errorf("find request: %w", session.ErrNotFound)
		}
		before = entries[len(entries)-1].Number
	}
}
