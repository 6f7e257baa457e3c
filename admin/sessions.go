package admin

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

const (
	usualPage   = 50
	largestPage = 500
)

type sessionRow struct {
	ID      session.SessionID `json:"id"`
	Tenant  string            `json:"tenant"`
	Key     string            `json:"key"`
	Threads int               `json:"thread_count"`
	Created time.Time         `json:"created"`
	Seen    time.Time         `json:"seen"`
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
	Condensations int               `json:"condensations"`
	Pending       bool              `json:"condensation_pending"`
	Created       time.Time         `json:"created"`
	Seen          time.Time         `json:"seen"`
}

func rowOf(s session.Session) sessionRow {
	return sessionRow{ID: s.ID, Tenant: s.Tenant, Key: s.Key, Threads: len(s.Threads), Created: s.Created, Seen: s.Seen}
}

func threadOf(t session.Thread) threadRow {
	return threadRow{
		ID: t.ID, Session: t.Session, Tenant: t.Tenant, Purpose: t.Purpose, Parent: t.Parent, ForkAt: t.ForkAt, Length: t.Len,
		Entries: t.Seq, Condensations: len(t.Condensations), Pending: t.Requested > 0, Created: t.Created, Seen: t.Seen,
	}
}

func (a *api) listSessions(r *http.Request, q query) (any, error) {
	asked, err := sessionQuery(q)
	if err != nil {
		return nil, err
	}
	page, err := a.o.Archive.Sessions(r.Context(), asked)
	if errors.Is(err, session.ErrCursor) {
		return nil, badParam("cursor", "Give the 'next' of the page before, unchanged.")
	}
	if err != nil {
		return nil, err
	}
	list := sessionList{Sessions: make([]sessionRow, len(page.Sessions)), Next: page.Next}
	for i, s := range page.Sessions {
		list.Sessions[i] = rowOf(s)
	}
	return list, nil
}

func sessionQuery(q query) (out session.SessionQuery, err error) {
	out.Cursor = q["cursor"]
	if out.Tenant, err = q.text("tenant"); err != nil {
		return out, err
	}
	if out.Key, err = q.text("key"); err != nil {
		return out, err
	}
	if out.Since, err = q.time("since"); err != nil {
		return out, err
	}
	out.Limit, err = q.number("limit", usualPage, 1, largestPage)
	return out, err
}

// sessionAt reads the session that a request's path names.
func (a *api) sessionAt(r *http.Request) (session.Session, error) {
	id, err := sessionID(r)
	if err != nil {
		return session.Session{}, err
	}
	s, err := a.o.Store.Session(r.Context(), id)
	if errors.Is(err, session.ErrNotFound) {
		return s, noSession()
	}
	return s, err
}

// threadsOf reads the threads that a session lists.
func (a *api) threadsOf(r *http.Request, s session.Session) (threads []session.Thread, err error) {
	for _, id := range s.Threads {
		t, err := a.o.Store.Thread(r.Context(), id)
		if errors.Is(err, session.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		threads = append(threads, t)
	}
	return threads, nil
}

func (a *api) oneSession(r *http.Request, _ query) (any, error) {
	s, err := a.sessionAt(r)
	if err != nil {
		return nil, err
	}
	threads, err := a.threadsOf(r, s)
	if err != nil {
		return nil, err
	}
	out := sessionDetail{sessionRow: rowOf(s), List: make([]threadRow, len(threads))}
	for i, t := range threads {
		out.List[i] = threadOf(t)
	}
	return out, nil
}

func (a *api) deleteSession(r *http.Request, _ query) (any, error) {
	id, err := sessionID(r)
	if err != nil {
		return nil, err
	}
	err = a.o.Archive.Forget(r.Context(), id)
	if errors.Is(err, session.ErrNotFound) {
		return nil, noSession()
	}
	if err != nil {
		return nil, fmt.Errorf("delete session: %w", err)
	}
	return nil, nil
}

// threadAt reads the thread that a request's path names; it must be the session's.
func (a *api) threadAt(r *http.Request) (session.Thread, error) {
	id, err := sessionID(r)
	if err != nil {
		return session.Thread{}, err
	}
	thread, err := threadID(r)
	if err != nil {
		return session.Thread{}, err
	}
	t, err := a.o.Store.Thread(r.Context(), thread)
	if errors.Is(err, session.ErrNotFound) || err == nil && t.Session != id {
		return t, noThread()
	}
	return t, err
}

func (a *api) oneThread(r *http.Request, _ query) (any, error) {
	t, err := a.threadAt(r)
	if err != nil {
		return nil, err
	}
	return threadOf(t), nil
}
