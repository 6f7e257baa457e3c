package admin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/dewpoint-proxy/dewpoint/admin/ui"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// sessionOf reads the session of a page's path, if the visitor may see it. Otherwise there is no such session.
func (p *pages) sessionOf(v *visit) (s session.Session, threads []session.Thread, err error) {
	id := v.PathValue("session")
	if !validID.MatchString(id) {
		return s, nil, errNoSession
	}
	if s, err = p.o.Store.Session(v.Context(), session.SessionID(id)); err != nil {
		return s, nil, replaceNotFound(err, errNoSession)
	}
	if !v.who.sees(s.Tenant) {
		return s, nil, errNoSession
	}
	threads, err = p.threads(v.Context(), &s)
	return s, threads, err
}

// threadOf reads the session and thread of a page's path.
func (p *pages) threadOf(v *visit) (s session.Session, t session.Thread, err error) {
	s, threads, err := p.sessionOf(v)
	if err != nil {
		return s, t, err
	}
	i := slices.IndexFunc(threads, func(t session.Thread) bool { return string(t.ID) == v.PathValue("thread") })
	if i < 0 {
		return s, t, errNoThread
	}
	return s, threads[i], nil
}

// titleFor returns the title of a session, if the visitor may see it. The title is what a person typed, so the reading is noted.
func (p *pages) titleFor(v *visit, s *session.Session) (string, error) {
	return p.titleOn(v, s, ui.SessionURL(s.ID))
}

// listedTitle is titleFor in a list of sessions: one note stands for those of a tenant.
func (p *pages) listedTitle(v *visit, s *session.Session) (string, error) {
	return p.titleOn(v, s, "/sessions?"+url.Values{"tenant": {s.Tenant}}.Encode())
}

func (p *pages) titleOn(v *visit, s *session.Session, page string) (string, error) {
	if !v.who.mayRead() {
		return "", nil
	}
	title, err := p.title(v.Context(), s)
	if err != nil || title == "" {
		return "", err
	}
	return title, p.noteRead(v.Request, page, s.Tenant)
}

// session is the page of a session.
func (p *pages) session(v *visit) (ui.Page, error) {
	s, threads, err := p.sessionOf(v)
	if err != nil {
		return nil, err
	}
	in := ui.SessionReads{Session: s, Missing: v.missing(), Threads: threads}
	if in.Title, err = p.titleFor(v, &s); err != nil {
		return nil, err
	}
	for _, t := range p.o.Settings.Tenants() {
		if mode := t.Condensing.InForce; t.Name == s.Tenant && mode != ModeOn {
			in.Mode = mode.words()
		}
	}
	if in.Saved, err = p.savedOf(v.Context(), threads); err != nil || len(threads) == 0 {
		return ui.NewSession(&in), err
	}
	in.Shown = ui.Newest(threads)
	if asked := v.URL.Query().Get("thread"); asked != "" {
		if i := slices.IndexFunc(threads, func(t session.Thread) bool { return string(t.ID) == asked }); i >= 0 {
			in.Shown = i
		}
	}
	in.Oldest, _ = strconv.Atoi(v.URL.Query().Get("oldest"))
	in.Steps, err = p.stepSizes(v.Context(), threads[in.Shown])
	return ui.NewSession(&in), err
}

// meta is the size of a logged message, without its content.
type meta struct {
	pos, tokens int
	seq         uint64
	time        time.Time
	own         bool // in the thread's own log
}

// metas reads the sizes of a thread's messages, by position, and of its system messages together.
func (a *api) metas(ctx context.Context, t session.Thread) (all []meta, system int, err error) {
	all = make([]meta, t.Len+1)
	at, upTo, read := t, t.Len, 0
	for {
		for from := uint64(1); from <= at.Seq; {
			events, err := a.o.Store.Events(ctx, at.ID, from, maxPageSize)
			if err != nil {
				return nil, 0, readLogError(err)
			}
			if read += len(events); read > maxEntries {
				return nil, 0, errThreadTooLarge
			}
			if len(events) == 0 {
				break
			}
			newest := 0
			for _, e := range events {
				if e.Pos > at.ForkAt && e.Pos <= upTo {
					all[e.Pos] = meta{e.Pos, e.Tokens, e.Seq, e.Time, at.ID == t.ID}
				}
				if e.Kind == session.System && at.ID == t.ID {
					newest += e.Tokens
				}
			}
			if system == 0 {
				system = newest // of the first page: the prompt
			}
			from = events[len(events)-1].Seq + 1
		}
		if at.ForkAt == 0 || at.Parent == "" {
			return all, system, nil
		}
		upTo = min(upTo, at.ForkAt)
		if at, err = a.o.Store.Thread(ctx, at.Parent); err != nil {
			return nil, 0, readLogError(err)
		}
	}
}

// answered returns the positions of a thread's steps, ascending, and the keys of their requests.
func (a *api) answered(ctx context.Context, t session.Thread) (positions []int, keys map[int]uint64, err error) {
	answers, err := a.o.Store.Answers(ctx, t.ID)
	if err != nil {
		return nil, nil, err // it names its operation
	}
	keys = map[int]uint64{}
	for _, one := range answers {
		if one.Pos > 0 && one.Pos <= t.Len {
			positions = append(positions, one.Pos)
			keys[one.Pos] = one.Request
		}
	}
	slices.Sort(positions)
	return slices.Compact(positions), keys, nil
}

// stepSizes returns the sizes of a thread's steps, as its log and its condensations tell them.
func (a *api) stepSizes(ctx context.Context, t session.Thread) ([]ui.StepSize, error) {
	positions, keys, err := a.answered(ctx, t)
	if err != nil || len(positions) == 0 {
		return nil, err
	}
	records, err := a.recorded(ctx, t.Session)
	if err != nil {
		return nil, err
	}
	all, system, err := a.metas(ctx, t)
	var f *Fault
	if errors.As(err, &f) {
		all, err = make([]meta, t.Len+1), nil // without sizes the list still says which steps there are
	}
	if err != nil {
		return nil, err
	}
	steps := make([]ui.StepSize, len(positions))
	before := 0
	for i, at := range positions {
		steps[i] = sizeOf(&t, all, before, at)
		steps[i].Prompt = system
		steps[i].Sent += system
		if s, ok := records[keys[at]]; ok {
			apply(&steps[i], &s)
		}
		before = at
	}
	return steps, nil
}

// sizeOf returns the size of the step at a position, after a step at the position before.
func sizeOf(t *session.Thread, all []meta, before, at int) ui.StepSize {
	s := ui.StepSize{At: at, Messages: at, Time: all[at].time}
	gone := make([]bool, at+1)
	for i := range t.Condensations {
		c := &t.Condensations[i]
		if !existed(t, c, all, at) {
			continue
		}
		if c.SummaryTokens > 0 && c.Added == 0 {
			s.Record = c.SummaryTokens
		}
		for _, r := range c.Forgotten {
			for p := r.From; p < r.To && p <= at; p++ {
				gone[p] = true
			}
		}
		if before == 0 && c.Prefix <= at || before > 0 && !existed(t, c, all, before) {
			s.Made = append(s.Made, ui.Link{Text: fmt.Sprint(i + 1), URL: ui.CondensationURL(t, c.ID)})
			s.Done = ui.Reason(c.Reason)
		}
	}
	for p := 1; p <= at; p++ {
		s.Sent += all[p].tokens
		switch {
		case gone[p]:
		case p > before && before > 0:
			s.New += all[p].tokens
		default:
			s.Kept += all[p].tokens
		}
	}
	return s
}

// existed reports whether a condensation was logged before the messages after a position.
func existed(t *session.Thread, c *session.Condensation, all []meta, at int) bool {
	if c.Prefix > at {
		return false
	}
	if c.ID.Thread != t.ID || at+1 >= len(all) {
		return true
	}
	next := all[at+1]
	return !next.own || next.seq == 0 || c.ID.Seq < next.seq
}
