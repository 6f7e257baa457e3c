package session

import (
	"context"
	"errors"
	"time"
)

// Errors that a Store returns, wrapped.
var (
	// ErrNotFound: the record does not exist or has expired.
	ErrNotFound = errors.New("not found")
	// ErrStale: the thread has moved on. Read it again and append only the missing messages.
	ErrStale = errors.New("stale append")
	// ErrLocked: another caller holds the lock.
	ErrLocked = errors.New("locked")
	// ErrUnreadable: the content exists but cannot be read. Its key is not configured, or it was damaged or tampered with.
	ErrUnreadable = errors.New("content unreadable")
	// ErrUnavailable: the store cannot be reached. The request must go on without it.
	ErrUnavailable = errors.New("store unavailable")
	// ErrDamaged: the stored data is damaged. It always comes with ErrUnavailable.
	ErrDamaged = errors.New("the store is damaged")
)

// Store persists the log and its indexes. It does not interpret them.
//
// All methods may be called concurrently and from any replica. The effect of a call that has returned is visible to every
// later call of the same replica; that of Condense, to every replica. A crash may lose writes other than Condense, which the
// next request repairs because clients resend their history. It never leaves a write half done: a Batch is applied completely
// or not at all, except that index entries may be missing. Records of a thread expire together, TTL after its last write; index
// entries may expire TTL after they were written. If the store cannot be reached, a call fails within the store's own deadline
// with an error that wraps ErrUnavailable.
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
	// Prepare stores a condensation that may be logged later, replacing the one prepared before. Logging one that
	// Answers deletes it. It returns ErrNotFound if the thread does not exist.
	Prepare(ctx context.Context, thread ThreadID, c Condensation) error
	// Prepared reads the prepared condensation. It returns ErrNotFound if there is none and ErrUnreadable if it cannot be
	// decrypted.
	Prepared(ctx context.Context, thread ThreadID) (Condensation, error)
	// Summary reads the summary of a condensation. Summaries never change. It returns ErrUnreadable if the summary cannot
	// be decrypted.
	Summary(ctx context.Context, id CondensationID) (string, error)
	// Events reads up to limit entries of a thread's log, beginning with entry at (1 is the first). A negative limit reads up to -limit
	// entries that end with entry at. Either way the oldest comes first. A page ends early, with the entry that brings its payloads to
	// PageBytes, or whose stored form does. If the log has lost its oldest entries, a page begins with the first that is left.
	//
	// Successive events of a batch whose payloads are in successive entries of one thread (Event.Held) may share an entry, and its Seq. An
	// entry comes without its payload, or its Held, if that is encrypted under a key that is not configured, damaged or tampered with. An
	// entry that is damaged as a whole is Unreadable.
	Events(ctx context.Context, thread ThreadID, at uint64, limit int) ([]Event, error)
	// Trace looks up the place where each trace was last left. Unknown traces give a zero Place.
	Trace(ctx context.Context, traces []Hash) ([]Place, error)
	// Mark makes traces point to a place, and those of first too that point to none yet. If the thread no longer exists, it stores nothing
	// and returns ErrNotFound.
	Mark(ctx context.Context, traces []Hash, at Place, first ...Hash) error
	// Enter adds e to an experiment. The first entry begins the experiment (see Entry.Opens); entries for sessions that
	// began before it are ignored. Losing or repeating an entry does no harm.
	Enter(ctx context.Context, e Entry) error
	// Experiment reads an experiment. One without entries is zero.
	Experiment(ctx context.Context, name string) (Experiment, error)
	// Save adds to a thread's savings. It returns ErrNotFound if the thread does not exist.
	Save(ctx context.Context, thread ThreadID, more Savings) error
	// Saved reads a thread's savings, zero if it has none or does not exist.
	Saved(ctx context.Context, thread ThreadID) (Savings, error)
	// Session reads the record of a session.
	Session(ctx context.Context, id SessionID) (Session, error)
	// Lock takes a thread's condensation lock without waiting, and returns ErrLocked if it is taken. The lock expires ttl
	// after it was taken or last renewed, so that a holder that died does not block others for long.
	Lock(ctx context.Context, thread ThreadID, ttl time.Duration) (Lease, error)
	// Encrypts reports whether the content of new events is encrypted.
	Encrypts() bool
	// Close completes pending writes and releases all resources.
	Close() error
}

// PageBytes is the size of payloads, in bytes, at which a page of events ends. The entry read last may exceed it.
const PageBytes = 1 << 20

// Found is the result of Find.
type Found struct {
	Places []Place // one per hash, zero where unknown
	Hinted *Thread // the hinted thread, nil if unknown or not requested
	Traced []Place // one per trace, zero where unknown; nil if no traces were requested
}

// Batch is one append. Thread is the record after the append (Len, Head, System). The store manages its Seq and, for a
// thread that exists, its Condensations: the given ones count only if the batch begins the thread, which takes an unknown
// thread and an At of 0 or ForkAt. Key is the client's session key, which the store adds to the session's record. The store counts the
// batches of a thread and of a session.
//
// The store refuses the batch with ErrStale if the thread's Len is not At; if the thread was created at another time than the
// batch says, because it was deleted and began again; or if the batch begins a fork whose parent is gone or began again.
type Batch struct {
	Thread Thread
	Key    string
	At     int
	Events []Event
	Places []IndexEntry
	Traces []Hash // point to the last of Places, or to the thread's head if there are none
	First  []Hash // traces that do so if they point to no place yet

	ParentCreated time.Time // when the parent of a new fork was created, zero if unknown
}

// IndexEntry maps a chain hash to a place.
type IndexEntry struct {
	Hash  Hash
	Place Place
}

// Ledger keeps the spending of budgets. A Store implements it.
type Ledger interface {
	// Reserve charges all accounts, or none if any of them is full, and holds room in them until Settle is called with the
	// same id or HoldFor has passed. The balances it returns are those before the charge. With an empty id it only reads
	// them. If the id already holds room, nothing changes.
	Reserve(ctx context.Context, id string, charges []Charge) (Reserved, error)
	// Settle releases the room held under id and adds each charge's amount, which may be negative. It changes nothing if
	// nothing is held under id any more.
	Settle(ctx context.Context, id string, charges []Charge) error
}

// HoldFor is how long reserved room is kept if the replica that reserved it died. The charge remains.
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
	Limit  int64 // the account is full when spent and held amounts reach it
	Amount int64
	Room   int64 // held in addition
}

// Balance holds the amounts spent of an account and held in it.
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

// Named returns the condensation of t that the notice names, nil if t does not have it.
func (n *Notice) Named(t *Thread) *Condensation {
	for i := range t.Condensations {
		if c := &t.Condensations[i]; c.ID.Thread == n.Thread && c.Time.Equal(n.Made) {
			return c
		}
	}
	return nil
}

// ErrCursor: the cursor did not come from this list or this kind of store.
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
	// Draw takes n from a leaky bucket that holds perMinute and leaks perMinute each minute. If n does not fit, it takes
	// nothing and returns how long to wait, unless owed is set: then n is taken regardless. An n larger than the bucket
	// needs an empty bucket. With n of 0, Draw takes nothing and returns how long to wait until anything fits.
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
