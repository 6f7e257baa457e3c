package admin

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// sessionIndex is the list of all sessions, newest first. A store lists them in an order of its own, so the list is read as a whole, and at most
// every few seconds.
type sessionIndex struct {
	archive session.Archive

	mu   sync.Mutex
	read time.Time
	took time.Duration // how long reading took
	all  []session.Session
}

// Bounds of how old a list may be. Reading it may take at most a tenth of the time.
const (
	indexAge   = 2 * time.Second
	indexShare = 10
)

// sessions returns all sessions, newest first.
func (x *sessionIndex) sessions(ctx context.Context) ([]session.Session, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if time.Since(x.read) < max(indexAge, indexShare*x.took) {
		return x.all, nil
	}
	begun := time.Now()
	var all []session.Session
	for cursor := ""; ; {
		page, err := x.archive.Sessions(ctx, session.SessionQuery{Cursor: cursor, Limit: maxPageSize})
		if err != nil {
			return nil, err // it names its operation
		}
		all = append(all, page.Sessions...)
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	slices.SortStableFunc(all, func(a, b session.Session) int { return b.Seen.Compare(a.Seen) })
	x.all, x.read, x.took = all, time.Now(), time.Since(begun)
	return all, nil
}

// forget makes the next call read the list again.
func (x *sessionIndex) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.read = time.Time{}
}
