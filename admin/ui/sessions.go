package ui

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Sessions is the list of sessions, newest first.
type Sessions struct {
	Query   string
	Tenant  string
	Since   string
	Tenants []string // to choose from; none: there is only one
	Rows    []SessionRow
	Total   int    // sessions that match
	Newer   string // address of the page before; empty: none
	Older   string
	Empty   string // why there are no rows
	Note    string // what was not searched
	Missing Missing
	Priced  bool
}

func (Sessions) template() string { return "sessions" }

// Heading returns the title.
func (Sessions) Heading() string { return "Sessions" }

// SessionRow is a session in the list.
type SessionRow struct {
	URL, Title    string
	Key, Tenant   string
	Client, Model string
	Steps         int
	Threads       int
	Made          int
	Now           int // tokens
	Saved         string
	Sign          int
	Seen          time.Time
}

// NewSessionRow makes the row of a session.
func NewSessionRow(s *session.Session, title string) SessionRow {
	row := SessionRow{
		URL: SessionURL(s.ID), Title: titleOf(s, title), Key: visible(firstLine(s.Key, 40)), Tenant: s.Tenant, Steps: s.Requests, Threads: len(s.Threads), Seen: s.Seen,
	}
	if row.Key == row.Title {
		row.Key = ""
	}
	return row
}

// Newest sets what the newest request of a session was.
func (r *SessionRow) Newest(client, model string, size int) {
	r.Client, r.Model, r.Now = visible(strings.TrimSpace(client)), visible(model), size
}

// Value sets what a session saved.
func (r *SessionRow) Value(s *Saved) {
	r.Sign = sign(s.Net)
	r.Saved = signed(s.Net)
	if len(s.Unpriced) > 0 {
		r.Saved, r.Sign = tokens(int(s.Tokens))+" tokens", sign(float64(s.Tokens))
	}
}

// PageURL returns the address of a page of the list.
func (s *Sessions) PageURL(page int) string {
	v := url.Values{}
	for name, value := range map[string]string{"q": s.Query, "tenant": s.Tenant, "since": s.Since} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if page > 1 {
		v.Set("page", fmt.Sprint(page))
	}
	if len(v) == 0 {
		return "/sessions"
	}
	return "/sessions?" + v.Encode()
}

// list is a list of sessions, and which columns it has.
type list struct {
	Rows        []SessionRow
	Client, Now bool
}

// listed leaves out the columns that no row has.
func listed(rows []SessionRow) list {
	l := list{Rows: rows}
	for _, r := range rows {
		l.Client, l.Now = l.Client || r.Client != "" || r.Model != "", l.Now || r.Now > 0
	}
	return l
}
