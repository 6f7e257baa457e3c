package session

import (
	"context"
	"errors"
	"time"
)

// Errors that a Store returns, wrapped.
var (
	// ErrNotFound means that the record does not exist or has expired.
	ErrNotFound = errors.New("not found")
	// ErrStale means that the thread has changed since it was read. Read it again and append only the missing messages.
	ErrStale = errors.New("stale append")
	// ErrLocked means that another caller has taken the lock.
	ErrLocked = errors.New("locked")
	// ErrUnreadable means that the content exists but cannot be read: its key is not configured, or it was damaged or tampered with.
	ErrUnreadable = errors.New("content unreadable")
	// ErrUnavailable means that the store cannot be reached. A request must go on without it.
	ErrUnavailable = errors.New("store unavailable")
	// ErrDamaged means that the stored data is damaged. An error that wraps it wraps ErrUnavailable too.
	ErrDamaged = errors.New("the store is damaged")
)

// Store persists the log and its indexes. It does not interpret them.
//
// All methods may be called concurrently and from any replica. When a call has returned, later calls of the same replica see its effect.
// When Condense has returned, all replicas do. A crash may lose writes other than those of Condense; the next request repairs that, because
// clients resend their history. A crash never leaves a write half done: a Batch is applied completely or not at all, except that index
// entries may be missing. All records of a thread expire together, TTL after its last write; index entries may expire TTL after they were
// written. If the store cannot be reached, a call fails within the store's own deadline, with an error that wraps ErrUnavailable.
type Store interface {
	Ledger
	Outbox
	// Secret returns the server secret. The first call sets it to proposed; it changes only if the store loses it.
	Secret(ctx context.Context, proposed Secret) (Secret, error)
	// Find looks up places by chain hash in one round trip. The same round trip also reads the hinted thread, if any, and
	// looks up traces as Trace does.
	Find(ctx context.Context, hashes []Hash, hint ThreadID, traces ...Hash) (Found, error)
	// Thread reads the record of a thread.
	Thread(ctx context.Context, id ThreadID) (Thread, error)
	// Append adds messages to a thread's log, or begins a thread.
	Append(ctx context.Context, b Batch) error
	// Condense logs c in its thread and returns it with its id. When it returns, c is durable and visible to all replicas.
	// It returns ErrNotFound if the thread does not exist.
	Condense(ctx context.Context, thread ThreadID, c Condensation) (Condensation, error)
	// Prepare stores a condensation that may be logged later. It replaces the one prepared before, and is deleted when Condense logs a
	// condensation whose Answers is true. It returns ErrNotFound if the thread does not exist.
	Prepare(ctx context.Context, thread ThreadID, c Condensation) error
	// Prepared reads the prepared condensation. It returns ErrNotFound if there is none and ErrUnreadable if it cannot be
	// decrypted.
	Prepared(ctx context.Context, thread ThreadID) (Condensation, error)
	// Summary reads the summary of a condensation. Summaries never change. It returns ErrUnreadable if the summary cannot
	// be decrypted.
	Summary(ctx context.Context, id CondensationID) (string, error)
	// Events reads a page of a thread's log: up to limit entries from entry at on (1 is the first) or, if limit is negative, up to -limit
	// entries that end with entry at. In both cases the oldest comes first. A page ends early with the entry at which the total size
	// of its payloads, or of their stored form, reaches PageBytes. If the log has lost its oldest entries, a page begins with the first that
	// is left.
	//
	// Successive events of a batch that refer to successive entries of one thread (Event.Ref) may share one entry and its Seq. If the
	// payload or the reference of an entry is damaged, tampered with, or encrypted under a key that is not configured, the event comes
	// without it. If an entry is damaged as a whole, its event has the kind Unreadable.
	Events(ctx context.Context, thread ThreadID, at uint64, limit int) ([]Event, error)
	// Trace looks up the place that each trace points to. Unknown traces give a zero Place.
	Trace(ctx context.Context, traces []Hash) ([]Place, error)
	// Mark notes in a thread that its history up to a place was answered, and makes traces point to the place. If the thread no longer
	// exists, it stores nothing and returns ErrNotFound.
	Mark(ctx context.Context, at Place, traces Traces) error
	// Answers returns what Mark noted in a thread, oldest first, none if the thread does not exist.
	Answers(ctx context.Context, thread ThreadID) ([]Answer, error)
	// Enter adds e to an experiment. The first entry begins the experiment (see Entry.Opens); entries for sessions that
	// began before it are ignored. Losing or repeating an entry does no harm.
	Enter(ctx context.Context, e Entry) error
	// Experiment reads an experiment, zero if it has no entries.
	Experiment(ctx context.Context, name string) (Experiment, error)
	// Save adds to a thread's savings. It returns ErrNotFound if the thread does not exist.
	Save(ctx context.Context, thread ThreadID, more Savings) error
	// Saved reads a thread's savings, zero if it has none or does not exist.
	Saved(ctx context.Context, thread ThreadID) (Savings, error)
	// Session reads the record of a session.
	Session(ctx context.Context, id SessionID) (Session, error)
	// Lock takes a thread's condensation lock without waiting. It returns ErrLocked if another caller has the lock. The lock expires ttl
	// after it was taken or last renewed, so that a replica that died does not block others for long.
	Lock(ctx context.Context, thread ThreadID, ttl time.Duration) (Lease, error)
	// Encrypts reports whether the content of new events is encrypted.
	Encrypts() bool
	// Close completes pending writes and releases all resources.
	Close() error
}

// PageBytes is the total size of payloads, in bytes, at which a page of events ends. The last entry of a page may exceed it.
const PageBytes = 1 << 20

// Found is the result of Find.
type Found struct {
	Places []Place // one per hash, zero where unknown
	Hinted *Thread // the hinted thread, nil if unknown or not requested
	Traced []Place // one per trace, zero where unknown; nil if no traces were requested
}

// Batch is one append. It begins the thread if the store does not know the thread and At is 0 or the thread's ForkAt. The store counts the
// batches of a thread and of a session.
//
// The store refuses the batch with ErrStale if the thread's Len is not At; if the thread was created at another time than the
// batch says, because it was deleted and began again; or if the batch begins a fork whose parent was deleted or began again.
type Batch struct {
	Thread Thread // as it is after the append; the store sets Seq, and ignores the Condensations unless the batch begins the thread
	Key    string // the client's session key, which the store adds to the session's record; empty if none
	At     int    // Thread.Len before the append
	Events []Event
	Places []IndexEntry
	Passed []Hash // chain hashes whose places are deleted, unless they point to another thread by now
	Traces Traces // will point to the last of Places, or to the thread's head if there are none

	ParentCreated time.Time // when the parent of a new fork was created, zero if unknown
}

// Traces are traces that will point to a place. A thread keeps only the newest MaxRecent of its recent traces: Append and Mark delete
// the older ones, unless they point to another thread by then. Mark may leave that to the next Append, but keeps at most twice as many. Of traces that are stored again, the last time counts.
type Traces struct {
	Lasting []Hash // kept as long as the thread
	Recent  []Hash
	First   []Hash // recent traces that keep the place that they point to already
	Request uint64 // for Mark only: Answer.Request
}

// Answer is a note that the history up to a position was answered.
type Answer struct {
	Pos     int
	Request uint64 // the RequestKey of the request, 0 if it had no id
}

// add adds a recent trace, or a lasting one.
func (t *Traces) add(trace Hash, lasts bool) {
	if lasts {
		t.Lasting = append(t.Lasting, trace)
	} else {
		t.Recent = append(t.Recent, trace)
	}
}

// Len returns the number of traces.
func (t *Traces) Len() int { return len(t.Lasting) + len(t.Recent) + len(t.First) }

// MaxRecent is how many recent traces a thread keeps. A step leaves about ten, and a client may come back to a step after several others: with two
// steps a soak found rewritten histories in new sessions.
const MaxRecent = 96

// IndexEntry maps a chain hash to a place.
type IndexEntry struct {
	Hash  Hash
	Place Place
}

// Ledger keeps the spending of budgets. A Store implements it.
type Ledger interface {
	// Reserve adds each charge's Amount to what its account has spent, and reserves its Room until Settle is called with the same id or
	// HoldFor has passed. If any account is full, it charges none. It returns the balances before the charge. With an empty id, it only
	// reads them. If there is a reservation with this id already, nothing changes.
	Reserve(ctx context.Context, id string, charges []Charge) (Reserved, error)
	// Settle releases the reservation with this id and adds each charge's Amount, which may be negative. If there is no reservation with
	// this id any more, it changes nothing.
	Settle(ctx context.Context, id string, charges []Charge) error
}

// HoldFor is how long a reservation lasts that is not settled because its replica died. The charged amounts remain.
const HoldFor = time.Hour

// Account is a budget in one unit and one period. All accounts of one call belong to the same tenant.
type Account struct {
	Tenant string
	Name   string
	Until  time.Time // end of its period; the account is kept for another HoldFor
}

// Charge is an amount charged to an account.
type Charge struct {
	Account
	Limit  int64 // the account is full when spent and reserved amounts together reach it
	Amount int64 // spent at once
	Room   int64 // reserved in addition
}

// Balance holds the amounts that are spent of an account and reserved in it.
type Balance struct{ Spent, Held int64 }

// Reserved is the result of Reserve.
type Reserved struct {
	Balances []Balance // one per charge
	Full     bool      // an account is full, so nothing was charged
}

// Full reports whether an account with balance b refuses the charge.
func (c *Charge) Full(b Balance) bool { return b.Spent+b.Held >= c.Limit }

// Outbox keeps the condensations that still have to be delivered to external sinks. A Store implements it.
type Outbox interface {
	// Enqueue adds a notice for a condensation that is about to be logged. The notice is durable no later than the
	// condensation. If the tenant already has limit notices waiting, Enqueue adds nothing and returns false.
	Enqueue(ctx context.Context, n Notice, limit int) (bool, error)
	// Enqueued skips the from oldest notices of a tenant and returns at most limit of the following ones, oldest first, and
	// the total number of the tenant's notices.
	Enqueued(ctx context.Context, tenant string, from, limit int) ([]Notice, int, error)
	// Dequeue deletes a notice. Deleting one that does not exist is not an error.
	Dequeue(ctx context.Context, n Notice) error
}

// Notice names a condensation that has no id yet.
type Notice struct {
	Tenant string
	Thread ThreadID
	Made   time.Time // Condensation.Time
}

// Named returns the condensation of t that the notice is for, nil if t does not have it.
func (n *Notice) Named(t *Thread) *Condensation {
	for i := range t.Condensations {
		if c := &t.Condensations[i]; c.ID.Thread == n.Thread && c.Time.Equal(n.Made) {
			return c
		}
	}
	return nil
}

// ErrCursor means that the cursor did not come from this list or this kind of store.
var ErrCursor = errors.New("not a cursor of this list")

// Archive is the part of a store that serves operators rather than requests. Every store implements it.
//
// Its calls look at many records and may take longer than those of Store. No request waits for them.
type Archive interface {
	// Sessions lists sessions in the store's own order. While the store does not change, each is listed once. A page looks
	// at a bounded number of records, so it may hold fewer than q.Limit sessions, or none, without being the last. An
	// invalid cursor is ErrCursor.
	Sessions(ctx context.Context, q SessionQuery) (SessionPage, error)
	// Forget deletes a session and everything kept for it: its threads with their logs, summaries and locks, and all places
	// and traces that point to them. A concurrent request leaves nothing of the old session behind; at most it begins the
	// session again with the complete history that its client sent. ErrNotFound if the session does not exist.
	Forget(ctx context.Context, id SessionID) error
	// Compact removes from the store's own files what was deleted before the call. Without it they may show that for a day. If ctx ends
	// first, it returns an error and the compaction goes on.
	Compact(ctx context.Context) error
	// Request logs a request for a thread to be condensed. Thread.Requested shows it to every replica, even after a
	// restart, until a condensation of the thread answers it. ErrNotFound if the thread does not exist.
	Request(ctx context.Context, thread ThreadID, at time.Time) error
	// Set stores a small value under a name, visible to all replicas. An empty value deletes it. The change is durable when
	// Set returns.
	Set(ctx context.Context, name string, value []byte) error
	// Settings returns all values stored by Set, by name.
	Settings(ctx context.Context) (map[string][]byte, error)
}

// Buckets are rate limits that replicas share. A store that only one process can open does not implement it.
type Buckets interface {
	// Draw adds n to a leaky bucket with room for perMinute, which leaks perMinute each minute. If n does not fit, Draw adds nothing and
	// returns how long to wait, unless owed is true: then it adds n in any case. An n larger than the bucket fits only if the bucket is
	// empty. If n is 0, Draw returns how long to wait until anything fits.
	Draw(ctx context.Context, bucket string, n, perMinute int, owed bool) (wait time.Duration, err error)
}

// SessionQuery selects sessions to list. Zero fields do not restrict the list.
type SessionQuery struct {
	Tenant string
	Key    string    // any of the session's keys, exactly
	Since  time.Time // last seen then or later
	Cursor string    // SessionPage.Next of the previous page
	Limit  int       // maximum sessions per page; must be positive
}

// Matches reports whether s satisfies the query.
func (q SessionQuery) Matches(s Session) bool {
	return (q.Tenant == "" || s.Tenant == q.Tenant) && (q.Key == "" || s.HasKey(q.Key)) && !s.Seen.Before(q.Since)
}

// SessionPage is one page of the list of sessions.
type SessionPage struct {
	Sessions []Session
	Next     string // cursor of the next page, empty after the last
}
