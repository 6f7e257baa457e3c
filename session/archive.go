package session

import (
	"context"
	"errors"
	"time"
)

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
