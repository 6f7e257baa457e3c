package admin

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

const (
	defaultPageSize = 50
	maxPageSize     = 500
)

type sessionRow struct {
	ID       session.SessionID `json:"id"`
	Tenant   string            `json:"tenant"`
	Key      string            `json:"key"`
	Names    []string          `json:"names,omitempty"`
	Threads  int               `json:"thread_count"`
	Requests int               `json:"requests"`
	Created  time.Time         `json:"created"`
	Seen     time.Time         `json:"seen"`
}

type sessionList struct {
	Sessions []sessionRow `json:"sessions"`
	Next     string       `json:"next,omitempty"`
}

type sessionDetail struct {
	sessionRow
	List []threadRow `json:"threads"`
}

type threadRow struct {
	ID            session.ThreadID  `json:"id"`
	Session       session.SessionID `json:"session"`
	Tenant        string            `json:"tenant"`
	Purpose       session.Purpose   `json:"purpose"`
	Parent        session.ThreadID  `json:"parent,omitempty"`
	ForkAt        int               `json:"fork_at"`
	Length        int               `json:"length"`
	Entries       uint64            `json:"entries"`
	Requests      int               `json:"requests"`
	Condensations int               `json:"condensations"`
	Pending       bool              `json:"condensation_pending"`
	Created       time.Time         `json:"created"`
	Seen          time.Time         `json:"seen"`
}

// rows converts a list. The result is never nil, so it is encoded as an array.
func rows[T, R any](list []T, row func(T) R) []R {
	out := make([]R, len(list))
	for i, v := range list {
		out[i] = row(v)
	}
	return out
}

func rowOf(s session.Session) sessionRow {
	return sessionRow{
		ID: s.ID, Tenant: s.Tenant, Key: s.Key, Names: s.Names, Threads: len(s.Threads), Requests: s.Requests, Created: s.Created, Seen: s.Seen,
	}
}

func threadOf(t session.Thread) threadRow {
	return threadRow{
		ID: t.ID, Session: t.Session, Tenant: t.Tenant, Purpose: t.Purpose, Parent: cmp.Or(t.Parent, t.Caller), ForkAt: t.ForkAt,
		Length: t.Len, Requests: t.Requests, Entries: t.Seq, Condensations: len(t.Condensations), Pending: t.Requested > 0, Created: t.Created, Seen: t.Seen,
	}
}

func (a *api) listSessions(r *http.Request, q *query) (any, error) {
	filter := session.SessionQuery{
		Cursor: q.values["cursor"], Tenant: q.text("tenant"), Key: q.text("key"), Since: q.time("since"),
		Limit: q.number("limit", defaultPageSize, maxPageSize),
	}
	if q.err != nil {
		return nil, q.err
	}
	if f := who(r).limit(&filter); f != nil {
		return nil, f
	}
	page, err := a.o.Archive.Sessions(r.Context(), filter)
	if errors.Is(err, session.ErrCursor) {
		return nil, badParam("cursor", "Give the 'next' of the previous page, unchanged.")
	}
	if err != nil {
		return nil, err
	}
	seen := slices.DeleteFunc(page.Sessions, func(s session.Session) bool { return !who(r).sees(s.Tenant) })
	return sessionList{Sessions: rows(seen, rowOf), Next: page.Next}, nil
}

// limit limits a list of sessions to the tenants that a token opens. If there are several, the list has to be filtered as well.
func (i *identity) limit(q *session.SessionQuery) error {
	switch {
	case q.Tenant != "" && !i.sees(q.Tenant):
		return fault(http.StatusForbidden, "not_permitted", "The token does not open this tenant.")
	case q.Tenant == "" && len(i.tenants) == 1:
		q.Tenant = i.tenants[0]
	}
	return nil
}

// sessionAt reads the session named in a request's path, and its threads.
func (a *api) sessionAt(r *http.Request, q *query) (s session.Session, threads []session.Thread, err error) {
	id := session.SessionID(q.id(r, "session"))
	if q.err != nil {
		return s, nil, q.err
	}
	if s, err = a.o.Store.Session(r.Context(), id); err != nil {
		return s, nil, replaceNotFound(err, errNoSession)
	}
	if !who(r).sees(s.Tenant) {
		return s, nil, errNoSession
	}
	threads, err = a.threads(r.Context(), &s)
	return s, threads, err
}

// threads reads the threads of a session. Those that no longer exist are skipped.
func (a *api) threads(ctx context.Context, s *session.Session) (threads []session.Thread, err error) {
	for _, id := range s.Threads {
		t, err := a.o.Store.Thread(ctx, id)
		if errors.Is(err, session.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err // it names its operation
		}
		threads = append(threads, t)
	}
	return threads, nil
}

func (a *api) oneSession(r *http.Request, q *query) (any, error) {
	s, threads, err := a.sessionAt(r, q)
	if err != nil {
		return nil, err
	}
	return sessionDetail{sessionRow: rowOf(s), List: rows(threads, threadOf)}, nil
}

func (a *api) deleteSession(r *http.Request, q *query) (any, error) {
	id := session.SessionID(q.id(r, "session"))
	if q.err != nil {
		return nil, q.err
	}
	s, err := a.o.Store.Session(r.Context(), id)
	if err == nil && !who(r).sees(s.Tenant) {
		return nil, errNoSession
	}
	if err == nil {
		err = a.note(r, AuditEntry{Did: "deleted a session", Change: true, On: "/s/" + string(id), Tenant: s.Tenant})
	}
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return nil, err
	}
	return nil, replaceNotFound(a.o.Archive.Forget(r.Context(), id), errNoSession)
}

// maxDeleteTime bounds how long one call deletes sessions.
const maxDeleteTime = time.Minute

type deletedBody struct {
	Deleted int  `json:"deleted"`
	More    bool `json:"more"` // some sessions may be left, so the client should call again
}

// deleteSessions deletes all sessions of a tenant, all with a session key, or all that match both.
func (a *api) deleteSessions(r *http.Request, q *query) (any, error) {
	filter := session.SessionQuery{Tenant: q.text("tenant"), Key: q.text("key"), Limit: maxPageSize}
	if q.err != nil {
		return nil, q.err
	}
	if filter.Tenant == "" && filter.Key == "" {
		return nil, badParam("tenant", "Give a tenant, a session key, or both.")
	}
	if f := who(r).limit(&filter); f != nil {
		return nil, f
	}
	end := time.Now().Add(maxDeleteTime)
	var out deletedBody
	for {
		page, err := a.o.Archive.Sessions(r.Context(), filter)
		if err != nil {
			return nil, err
		}
		for _, s := range page.Sessions {
			if time.Now().After(end) {
				out.More = true
				return out, nil
			}
			if !who(r).sees(s.Tenant) {
				continue
			}
			err := a.note(r, AuditEntry{Did: "deleted a session of a tenant or key", Change: true, On: "/s/" + string(s.ID), Tenant: s.Tenant})
			if err != nil {
				return nil, err
			}
			err = a.o.Archive.Forget(r.Context(), s.ID)
			if err == nil {
				out.Deleted++
			} else if !errors.Is(err, session.ErrNotFound) {
				return nil, err
			}
		}
		if page.Next == "" {
			return out, nil
		}
		filter.Cursor = page.Next
	}
}

// maxCompactWait bounds how long one call waits until the store is compacted.
const maxCompactWait = time.Minute

// compact removes what was deleted from the store's files, too.
func (a *api) compact(r *http.Request, _ *query) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), maxCompactWait)
	defer cancel()
	err := a.o.Archive.Compact(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, errCompacting
	}
	return nil, err
}

// threadAt reads the thread named in a request's path. It must belong to the session in that path.
func (a *api) threadAt(r *http.Request, q *query) (session.Thread, error) {
	sessionID, threadID := session.SessionID(q.id(r, "session")), session.ThreadID(q.id(r, "thread"))
	if q.err != nil {
		return session.Thread{}, q.err
	}
	t, err := a.o.Store.Thread(r.Context(), threadID)
	if errors.Is(err, session.ErrNotFound) || err == nil && (t.Session != sessionID || !who(r).sees(t.Tenant)) {
		return t, errNoThread
	}
	return t, err
}

func (a *api) oneThread(r *http.Request, q *query) (any, error) {
	t, err := a.threadAt(r, q)
	if err != nil {
		return nil, err
	}
	return threadOf(t), nil
}
