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
