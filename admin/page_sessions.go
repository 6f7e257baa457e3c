package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/admin/ui"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

const sessionsPerPage = 50

// searchTime bounds how long one search reads titles.
const searchTime = 2 * time.Second

// sessions is the list of sessions.
func (p *pages) sessions(v *visit) (ui.Page, error) {
	query := v.URL.Query()
	out := ui.Sessions{Query: strings.TrimSpace(query.Get("q")), Tenant: query.Get("tenant"), Since: query.Get("since"), Missing: v.missing()}
	out.Tenants = p.tenantNames(v)
	all, err := p.list.sessions(v.Context())
	if err != nil {
		return nil, err
	}
	found, note := p.search(v, all, &out)
	if len(found) == 0 && validRequest.MatchString(out.Query) {
		if moved := p.findRequest(v, out.Query); errors.As(moved, new(redirect)) {
			return nil, moved
		}
	}
	out.Total, out.Note = len(found), note
	page, _ := strconv.Atoi(query.Get("page"))
	page = min(max(page, 1), (len(found)-1)/sessionsPerPage+1)
	first := min((page-1)*sessionsPerPage, len(found))
	last := min(first+sessionsPerPage, len(found))
	for i := range found[first:last] {
		row, err := p.sessionRow(v, &found[first+i])
		if err != nil {
			return nil, err
		}
		out.Rows = append(out.Rows, row)
	}
	if page > 1 {
		out.Newer = out.PageURL(page - 1)
	}
	if last < len(found) {
		out.Older = out.PageURL(page + 1)
	}
	switch {
	case out.Query != "" || out.Tenant != "" || out.Since != "":
		out.Empty = "No session matches. Sessions are found by their first words, their keys, their ids, and the ids of requests."
	default:
		out.Empty = "There are no sessions yet. Point an agent at the proxy, and the first request appears here. Unused sessions expire after store.ttl."
	}
	return out, nil
}

// tenantNames returns the tenants that a visitor may choose from; none if that is only one.
func (p *pages) tenantNames(v *visit) (names []string) {
	for _, t := range p.o.Settings.Tenants() {
		if v.who.sees(t.Name) {
			names = append(names, t.Name)
		}
	}
	if len(names) < 2 {
		return nil
	}
	return names
}

// search returns the sessions that a visitor asks for and may see, and what was not searched.
func (p *pages) search(v *visit, all []session.Session, asked *ui.Sessions) (found []session.Session, note string) {
	since := time.Time{}
	if d, err := time.ParseDuration(asked.Since); err == nil && d > 0 {
		since = time.Now().Add(-d)
	}
	words := strings.ToLower(asked.Query)
	end := time.Now().Add(searchTime)
	for i := range all {
		s := &all[i]
		if !v.who.sees(s.Tenant) || asked.Tenant != "" && s.Tenant != asked.Tenant || s.Seen.Before(since) {
			continue
		}
		if words == "" || strings.Contains(string(s.ID), words) || keysContain(s, words) {
			found = append(found, *s)
			continue
		}
		if !v.who.mayRead() {
			continue
		}
		if time.Now().After(end) {
			note = fmt.Sprintf("The first words of sessions older than %s UTC were not searched. Narrow the time down.", s.Seen.UTC().Format("2 Jan 2006, 15:04"))
			continue
		}
		if title, err := p.listedTitle(v, s); err == nil && strings.Contains(strings.ToLower(title), words) {
			found = append(found, *s)
		}
	}
	return found, note
}

func keysContain(s *session.Session, words string) bool {
	return slices.ContainsFunc(append([]string{s.Key}, s.Names...), func(k string) bool { return strings.Contains(strings.ToLower(k), words) })
}

// sessionRow reads what a row of the list shows.
func (p *pages) sessionRow(v *visit, s *session.Session) (ui.SessionRow, error) {
	title, err := p.listedTitle(v, s)
	if err != nil {
		return ui.SessionRow{}, err
	}
	row := ui.NewSessionRow(s, title)
	if len(p.o.Settings.Tenants()) < 2 {
		row.Tenant = ""
	}
	threads, err := p.threads(v.Context(), s)
	if err != nil {
		return row, err
	}
	if p.o.Journal != nil {
		newest, err := p.o.Journal.Steps(v.Context(), s.ID, 0, 1)
		if err != nil {
			return row, err //nolint:wrapcheck // it names its operation
		}
		if len(newest) > 0 {
			row.Newest(newest[0].Agent+" "+newest[0].Version, newest[0].Model, newest[0].After.Tokens)
		}
	}
	saved, err := p.savedOf(v.Context(), threads)
	row.Made = saved.Condensations
	row.Value(&saved)
	return row, err
}

// savedOf returns what condensing saved on threads.
func (a *api) savedOf(ctx context.Context, threads []session.Thread) (out ui.Saved, err error) {
	var total sums
	for _, t := range threads {
		s, err := a.sumsOf(ctx, t)
		if err != nil {
			return out, err
		}
		total.add(s)
	}
	out = ui.Saved{
		Tokens: total.Tokens, NotSent: float64(total.NotSent) / nanoPerUSD, Rewritten: float64(total.Rewritten) / nanoPerUSD,
		Own: float64(-total.Nano) / nanoPerUSD, Net: float64(total.NotSent+total.Rewritten-total.Nano) / nanoPerUSD,
		Unpriced: total.unpriced, Condensations: total.condensations, Calls: total.Calls,
	}
	return out, nil
}

// titleEntries is how many log entries are searched for the first words of a person, in at most so many threads.
const (
	titleEntries = 24
	titleThreads = 3
)

// title returns the first words that a person typed in a session; "" if they are not kept.
func (p *pages) title(ctx context.Context, s *session.Session) (string, error) {
	if title, known := p.titles.Get(s.ID); known {
		return title, nil
	}
	title := ""
	for i, id := range s.Threads {
		t, err := p.o.Store.Thread(ctx, id)
		if errors.Is(err, session.ErrNotFound) {
			continue
		}
		if err != nil {
			return "", err // it names its operation
		}
		if i < titleThreads || t.Purpose == session.PurposeMain {
			if title, err = p.firstWords(ctx, &t); err != nil {
				return "", err
			}
		}
		if title != "" {
			break
		}
		if i > 2*titleThreads {
			break
		}
	}
	if title != "" { // otherwise the words may still come
		p.titles.Add(s.ID, title)
	}
	return title, nil
}

// firstWords returns the first words that a person typed in a thread.
func (p *pages) firstWords(ctx context.Context, t *session.Thread) (string, error) {
	if t.Purpose != session.PurposeMain && t.Purpose != session.PurposeKept {
		return "", nil
	}
	events, err := p.o.Store.Events(ctx, t.ID, 1, titleEntries)
	if err == nil {
		err = session.ReadContent(ctx, p.o.Store, events, int(p.o.MaxBytes))
	}
	if errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrTooLarge) {
		return "", nil
	}
	if err != nil {
		return "", err // it names its operation
	}
	for _, e := range events {
		if e.Kind != session.User || len(e.Payload) == 0 {
			continue
		}
		c, err := p.o.Forwarder.Read(t.Dialect, e.Payload)
		if err != nil {
			continue
		}
		if words := strings.TrimSpace(record.TypedText(c.Text)); words != "" {
			const longest = 200
			return strings.ToValidUTF8(words[:min(len(words), longest)], ""), nil
		}
	}
	return "", nil
}
