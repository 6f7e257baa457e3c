package session

import (
	"context"
	"errors"
	"time"
)

// Errors that a Store returns, wrapped.
var (
	// ErrNotFound: the record does not exist, or has expired.
	ErrNotFound = errors.New("not found")
	// ErrStale: the thread has moved on; read it again and append what is still missing.
	ErrStale = errors.New("stale append")
	// ErrLocked: another caller holds the lock.
	ErrLocked = errors.New("locked")
	// ErrUnreadable: the content is there and cannot be read. Its key is not configured, or it was changed.
	ErrUnreadable = errors.New("content unreadable")
	// ErrUnavailable: the store cannot be reached; the request must go on without it.
	ErrUnavailable = errors.New("store unavailable")
	// ErrDamaged: what the store keeps is damaged. It comes with ErrUnavailable.
	ErrDamaged = errors.New("the store is damaged")
)

// Store keeps the log and its indexes. It knows nothing of what they mean.
//
// All methods may be called concurrently, from any replica. What a method has returned is visible to every later call
// of the same replica; for Condense, of every replica. Writes other than Condense may be lost in a crash (they are
// repaired from the next request, because clients resend their history); never half-written: a Batch is applied whole
// or not at all, save that index entries may be missing. Records expire together, TTL after their thread was last
// written. A store that cannot be reached returns an error that wraps ErrUnavailable within its own deadline.
type Store interface {
	Ledger
	Outbox
	// Secret returns the server secret, which is proposed the first time and then never changes.
	Secret(ctx context.Context, proposed Secret) (Secret, error)
	// Find looks up places by chain hash, in one round trip; with a hint also the hinted thread, and what Trace gives for
	// traces, in the same one.
	Find(ctx context.Context, hashes []Hash, hint ThreadID, traces ...Hash) (Found, error)
	// Thread reads one thread's record.
	Thread(ctx context.Context, id ThreadID) (Thread, error)
	// Append adds messages to a thread's log, or begins a thread.
	Append(ctx context.Context, b Batch) error
	// Condense logs c in its thread and returns it with its id; it is durable and visible to all replicas when it returns.
	// ErrNotFound if the thread was never begun.
	Condense(ctx context.Context, thread ThreadID, c Condensation) (Condensation, error)
	// Prepare keeps a condensation that may be logged later, in the place of the one that was kept before. It is forgotten once any is
	// logged. ErrNotFound if the thread was never begun.
	Prepare(ctx context.Context, thread ThreadID, c Condensation) error
	// Prepared reads what Prepare keeps; ErrNotFound if there is nothing, ErrUnreadable if it cannot be opened.
	Prepared(ctx context.Context, thread ThreadID) (Condensation, error)
	// Summary reads the summary of one condensation. Summaries never change. ErrUnreadable if it cannot be opened.
	Summary(ctx context.Context, id CondensationID) (string, error)
	// Events reads at most limit entries of a thread's log, beginning with entry from (1 is the first). One
	// whose payload is encrypted under a key that is not configured comes without it; one that was changed is ErrUnreadable.
	Events(ctx context.Context, thread ThreadID, from uint64, limit int) ([]Event, error)
	// Trace looks up which thread last left each trace. Unknown traces give a zero Place.
	Trace(ctx context.Context, traces []Hash) ([]Place, error)
	// Mark makes traces point to a place. ErrNotFound if its thread is gone: nothing is left of it.
	Mark(ctx context.Context, traces []Hash, at Place) error
	// Enter adds to an experiment, and begins it with the first entry: then with the thread that this is for, if it begins a session. What
	// is for a thread that began before the experiment is left out. An entry that is lost, or comes twice, is no harm.
	Enter(ctx context.Context, e Entry) error
	// Experiment reads an experiment; one without entries is zero.
	Experiment(ctx context.Context, name string) (Experiment, error)
	// Save adds to a thread's savings. ErrNotFound if the thread is gone.
	Save(ctx context.Context, thread ThreadID, more Savings) error
	// Saved reads a thread's savings; of a thread without any, or that is not known, zero.
	Saved(ctx context.Context, thread ThreadID) (Savings, error)
	// Session reads one session's record.
	Session(ctx context.Context, id SessionID) (Session, error)
	// Lock takes a thread's condensation lock, without waiting: ErrLocked if it is taken. It runs out ttl after it was taken or last
	// renewed, so that nothing waits long for a holder that died.
	Lock(ctx context.Context, thread ThreadID, ttl time.Duration) (Lease, error)
	// Close writes what is pending and releases all resources.
	Close() error
}

// Found is the answer of Find.
type Found struct {
	Places []Place // one per hash, zero where unknown
	Hinted *Thread // the hinted thread, nil if unknown or not asked for
	Traced []Place // one per trace, zero where unknown; nil if none was asked for
}

// Batch is one append. Thread carries the record as it is to be after the append (Len, Head, System); its Seq and
// Condensations are kept by the store, and those given count only when the thread begins (At is 0 or ForkAt and the
// thread is unknown). Key is the session key for the session's record.
//
// The store refuses the batch with ErrStale if the thread's Len is not At, if the thread began at another time than the
// batch's, since then it was deleted and began anew, or if it begins a fork whose parent is gone, or has begun anew.
// ParentCreated is when the parent began that a beginning fork was found to share, zero if that is not known.
type Batch struct {
	Thread Thread
	Key    string
	At     int
	Events []Event
	Places []IndexEntry
	Traces []Hash // point to the last of Places, or to the thread's head

	ParentCreated time.Time
}

// IndexEntry makes a chain hash stand for a place.
type IndexEntry struct {
	Hash  Hash
	Place Place
}

// Ledger keeps what was spent of budgets. A Store implements it.
type Ledger interface {
	// Reserve charges accounts, all or none, and holds room in them, each until it is settled or HoldFor is over. None is charged if one is
	// full, which is when what was spent of it and what is held reach its limit. Balances are those before. With an empty id it only tells them.
	// A call with an id that holds something changes nothing.
	Reserve(ctx context.Context, id string, charges []Charge) (Reserved, error)
	// Settle ends what was held under an id, and adds each charge's amount, which may be negative. Where nothing is held any more, nothing changes.
	Settle(ctx context.Context, id string, charges []Charge) error
}

// HoldFor is how long room is held that is never settled, because the replica that reserved it died. Its charge stays.
const HoldFor = time.Hour

// Account is a budget in one unit and one period. All accounts of one call are of one tenant.
type Account struct {
	Tenant string
	Name   string
	Until  time.Time // when its period ends; it is kept for HoldFor longer
}

// Charge is what an account is charged.
type Charge struct {
	Account
	Limit  int64 // at which it is full
	Amount int64
	Room   int64 // to be held on top
}

// Balance is what was spent of an account, and what is held.
type Balance struct{ Spent, Held int64 }

// Reserved is the answer of Reserve.
type Reserved struct {
	Balances []Balance // one for each charge
	Full     bool      // nothing was charged: an account is full
}

// Full reports whether an account with a balance takes no charge.
func (c *Charge) Full(b Balance) bool { return b.Spent+b.Held >= c.Limit }

// Outbox keeps which condensations are still to be told of elsewhere. A Store implements it.
type Outbox interface {
	// Enqueue notes that a condensation is to be told of which is about to be logged: once that is durable, so is the notice. It notes nothing,
	// and reports false, where limit are waiting for their tenant already.
	Enqueue(ctx context.Context, n Notice, limit int) (bool, error)
	// Enqueued gives at most limit of a tenant's notices, oldest first, without the first from of them, and how many there are in all.
	Enqueued(ctx context.Context, tenant string, from, limit int) ([]Notice, int, error)
	// Dequeue forgets a notice. One that is not there is no error.
	Dequeue(ctx context.Context, n Notice) error
}

// Notice names a condensation that has no id yet.
type Notice struct {
	Tenant string
	Thread ThreadID
	Made   time.Time // Condensation.Time
}

// Named gives the condensation that a notice names, nil if its thread does not have it.
func (n *Notice) Named(t *Thread) *Condensation {
	for i := range t.Condensations {
		if c := &t.Condensations[i]; c.ID.Thread == n.Thread && c.Time.Equal(n.Made) {
			return c
		}
	}
	return nil
}

// ErrCursor: a cursor was not given by this store, or by one of another kind.
var ErrCursor = errors.New("not a cursor of this list")

// Archive is what an operator asks of a store, apart from what requests do with it. A store implements both.
//
// Its calls may take longer than a request's: they look at many records, and are not on any request's way.
type Archive interface {
	// Sessions lists sessions in the store's own order, each once as far as the store stays as it is. A page holds at most
	// q.Limit of them; it may hold fewer, or none, and still not be the last: a page looks at a bounded number of records.
	// ErrCursor if the cursor is none.
	Sessions(ctx context.Context, q SessionQuery) (SessionPage, error)
	// Forget deletes a session and all that is kept of it: its threads with their logs, summaries and locks, and every
	// place and trace that points to them. What was under way meanwhile leaves nothing of it behind: at most it begins the
	// session anew, whole, from what its client sends. ErrNotFound if there is no such session.
	Forget(ctx context.Context, id SessionID) error
	// Request logs a request for a thread to be condensed. It is pending, in Thread.Requested, for every replica
	// and after every restart, until a condensation of the thread answers it. ErrNotFound if the thread was never begun.
	Request(ctx context.Context, thread ThreadID, at time.Time) error
	// Set keeps a small value under a name, which all replicas see, until it is set again; an empty one is deleted. It is durable when
	// it returns.
	Set(ctx context.Context, name string, value []byte) error
	// Settings gives all that Set keeps, by name.
	Settings(ctx context.Context) (map[string][]byte, error)
}

// Buckets is what replicas share of what was taken of them. A store that only one process can open has none.
type Buckets interface {
	// Draw takes n from a bucket that leaks perMinute in a minute and holds as much, or tells how long to wait: what does not fit is not
	// taken, unless it is owed. Of what is larger than the bucket as much as the bucket holds must fit. With 0 it tells how long to wait until anything fits.
	Draw(ctx context.Context, bucket string, n, perMinute int, owed bool) (wait time.Duration, err error)
}

// SessionQuery says which sessions to list. Zero fields do not narrow it.
type SessionQuery struct {
	Tenant string
	Key    string    // the client's session key, exactly
	Since  time.Time // last seen then or later
	Cursor string    // SessionPage.Next of the page before
	Limit  int       // sessions in the page at most; must be positive
}

// Matches reports whether a session is one that was asked for.
func (q SessionQuery) Matches(s Session) bool {
	return (q.Tenant == "" || s.Tenant == q.Tenant) && (q.Key == "" || s.Key == q.Key) && !s.Seen.Before(q.Since)
}

// SessionPage is a part of the list of sessions.
type SessionPage struct {
	Sessions []Session
	Next     string // where the next page begins, empty after the last
}
