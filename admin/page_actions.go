package admin

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/admin/ui"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// confirmCondense asks whether to condense a thread.
func (p *pages) confirmCondense(v *visit) (ui.Page, error) {
	s, t, err := p.threadOf(v)
	if err != nil {
		return nil, err
	}
	if err := p.checkCondensable(t.Tenant); err != nil {
		return nil, err
	}
	return ui.Confirm{
		Title: "Condense this thread?", Text: "The thread’s next request is condensed before it is forwarded, if it holds anything that may be hidden. Nothing is deleted.",
		Action: v.URL.Path, Button: "Condense", Back: ui.SessionURL(s.ID), CSRF: v.who.csrf,
	}, nil
}

func (p *pages) doCondense(v *visit) (ui.Page, error) {
	s, t, err := p.threadOf(v)
	if err != nil {
		return nil, err
	}
	if err := p.checkCondensable(t.Tenant); err != nil {
		return nil, err
	}
	if err := p.note(v.Request, AuditEntry{Did: "asked for a condensation", Change: true, On: ui.SessionURL(s.ID), Tenant: s.Tenant, Detail: string(t.ID)}); err != nil {
		return nil, err
	}
	if t.Requested == 0 {
		if err := p.o.Archive.Request(v.Context(), t.ID, time.Now()); err != nil {
			return nil, replaceNotFound(err, errNoThread)
		}
	}
	p.changed(v)
	return nil, redirect{ui.SessionURL(s.ID) + "?thread=" + string(t.ID)}
}

// changed reports a change that a form made.
func (p *pages) changed(v *visit) {
	p.o.OnChange(Change{Method: v.Method, Path: v.URL.Path, From: v.RemoteAddr, Who: v.who.name})
}

// confirmDelete asks whether to delete a session.
func (p *pages) confirmDelete(v *visit) (ui.Page, error) {
	s, threads, err := p.sessionOf(v)
	if err != nil {
		return nil, err
	}
	title, err := p.titleFor(v, &s)
	if err != nil {
		return nil, err
	}
	return ui.Confirm{
		Title: "Delete this session?", Text: ui.Title(&s, title) + ": " + ui.Plural(len(threads), "thread") + ", with messages, records and figures.",
		Warning: "This cannot be taken back. If an agent goes on with it, the session begins again with what the agent sends.",
		Action:  v.URL.Path, Button: "Delete", Bad: true, Back: ui.SessionURL(s.ID), CSRF: v.who.csrf,
	}, nil
}

func (p *pages) doDelete(v *visit) (ui.Page, error) {
	s, _, err := p.sessionOf(v)
	if err != nil {
		return nil, err
	}
	if err := p.note(v.Request, AuditEntry{Did: "deleted a session", Change: true, On: ui.SessionURL(s.ID), Tenant: s.Tenant}); err != nil {
		return nil, err
	}
	if err := p.o.Archive.Forget(v.Context(), s.ID); err != nil {
		return nil, replaceNotFound(err, errNoSession)
	}
	p.list.forget()
	p.changed(v)
	return nil, redirect{"/sessions"}
}

// withKey returns the sessions that a visitor may delete by a key: those of a person or a program.
func (p *pages) withKey(v *visit, key string) (found []session.Session, err error) {
	if key = strings.TrimSpace(key); key == "" || len(key) > maxTextBytes {
		return nil, badParam("key", "Give a session key, such as the name of a person that your client sends.")
	}
	all, err := p.list.sessions(v.Context())
	for i := range all {
		if v.who.sees(all[i].Tenant) && all[i].HasKey(key) {
			found = append(found, all[i])
		}
	}
	return found, err
}

var errNoKey = sorry(http.StatusNotFound, "No session has this key.")

// confirmDeleteKey asks whether to delete all sessions with a key.
func (p *pages) confirmDeleteKey(v *visit) (ui.Page, error) {
	key := v.URL.Query().Get("key")
	found, err := p.withKey(v, key)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errNoKey
	}
	return ui.Confirm{
		Title: "Delete all sessions of this key?", Text: ui.Plural(len(found), "session") + " with the key " + key + ".",
		Warning: "This cannot be taken back.", Action: "/delete", Button: "Delete " + ui.Plural(len(found), "session"), Bad: true, Back: "/sessions?q=" + url.QueryEscape(key),
		CSRF: v.who.csrf, Fields: []ui.Field{{Name: "key", Value: key, Hidden: true}},
	}, nil
}

func (p *pages) doDeleteKey(v *visit) (ui.Page, error) {
	p.list.forget()
	found, err := p.withKey(v, v.PostFormValue("key"))
	if err == nil && len(found) == 0 {
		err = errNoKey
	}
	if err != nil {
		return nil, err
	}
	for i := range found {
		if err := p.note(v.Request, AuditEntry{Did: "deleted a session by its key", Change: true, On: ui.SessionURL(found[i].ID), Tenant: found[i].Tenant}); err != nil {
			return nil, err
		}
		if err := p.o.Archive.Forget(v.Context(), found[i].ID); err != nil && replaceNotFound(err, nil) != nil {
			return nil, err // it names its operation
		}
	}
	p.list.forget()
	p.changed(v)
	return nil, redirect{"/sessions"}
}

// confirmMode asks how a tenant's histories are to be condensed for a while.
func (p *pages) confirmMode(v *visit) (ui.Page, error) {
	tenant := v.URL.Query().Get("tenant")
	if err := p.checkModeTenant(v, tenant); err != nil {
		return nil, err
	}
	whose := "of the tenant " + tenant
	if tenant == "" {
		whose = "of all tenants"
	}
	return ui.Confirm{
		Title: "Condensing " + whose, Text: "An override lasts for a limited time, on all replicas. For a permanent change, edit the configuration.",
		Action: "/condensing", Button: "Set", Back: "/", CSRF: v.who.csrf,
		Fields: []ui.Field{
			{Name: "tenant", Value: tenant, Hidden: true},
			{Name: "mode", Label: "Mode", Options: append(modeNames(), asConfigured)},
			{Name: "for", Label: "For", Value: "2h"},
			{Name: "reason", Label: "Why (for others to read)"},
		},
	}, nil
}

// checkModeTenant rejects a tenant that does not exist or is not the visitor's. All tenants are only for who is not limited to some.
func (p *pages) checkModeTenant(v *visit, tenant string) error {
	known := tenant == "" || slices.ContainsFunc(p.o.Settings.Tenants(), func(t Tenant) bool { return t.Name == tenant })
	if !known || tenant == "" && !v.who.unlimited() || !v.who.sees(tenant) && tenant != "" {
		return fault(http.StatusNotFound, "tenant_unknown", "There is no such tenant.")
	}
	return nil
}

func (p *pages) doMode(v *visit) (ui.Page, error) {
	tenant, mode := v.PostFormValue("tenant"), v.PostFormValue("mode")
	if err := p.checkModeTenant(v, tenant); err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	set := Override{Tenant: tenant, Since: now, Until: now.Add(maxOverrideTime), From: v.RemoteAddr}
	if mode != asConfigured {
		asked := overrideRequest{Mode: Mode(mode), For: v.PostFormValue("for"), Reason: v.PostFormValue("reason")}
		duration, err := asked.check()
		if err != nil {
			return nil, err
		}
		set.Mode, set.Until, set.Reason = asked.Mode, now.Add(duration), asked.Reason
	}
	if err := p.noteMode(v.Request, tenant, mode, set.Reason); err != nil {
		return nil, err
	}
	if err := p.o.Settings.SetOverride(v.Context(), set); err != nil {
		return nil, err //nolint:wrapcheck // it names its operation
	}
	p.changed(v)
	return nil, redirect{"/"}
}

const (
	activityDays = 31  // that the log is looked through
	activityRows = 200 // on a page
)

// notes returns the newest entries of the audit log that a visitor may see.
func (p *pages) notes(v *visit, limit int) (all []AuditEntry, err error) {
	if p.o.Audit == nil {
		return nil, nil
	}
	for day := range activityDays {
		some, err := p.o.Audit.Notes(v.Context(), time.Now().UTC().AddDate(0, 0, -day))
		if err != nil {
			return nil, err //nolint:wrapcheck // it names its operation
		}
		for _, e := range some {
			if v.who.unlimited() || e.Tenant != "" && v.who.sees(e.Tenant) {
				all = append(all, e)
			}
		}
		if len(all) >= limit {
			return all[:limit], nil
		}
	}
	return all, nil
}

// activity is the page of the audit log.
func (p *pages) activity(v *visit) (ui.Page, error) {
	all, err := p.notes(v, activityRows)
	out := ui.Log{Empty: "In the last 31 days no content was read, and nothing was changed."}
	for _, e := range all {
		row := ui.LogRow{Time: e.Time, Who: e.Who, Role: string(e.Role), What: e.Did, On: e.On, URL: e.On, Tenant: e.Tenant, From: e.From, Did: e.Change}
		if e.Detail != "" {
			row.What += ": " + e.Detail
		}
		out.Rows = append(out.Rows, row)
	}
	return out, err
}

// exportActivity writes the audit log as JSON lines.
func (p *pages) exportActivity(v *visit) {
	if f := p.admit(page{change: true}, v); f != nil {
		p.fault(v, "log", f)
		return
	}
	const most = 1 << 20
	all, err := p.notes(v, most)
	if err != nil {
		p.fault(v, "log", p.faultOf(err))
		return
	}
	v.to.Header().Set("Content-Type", "application/jsonl")
	v.to.Header().Set("Content-Disposition", `attachment; filename="dewpoint-activity.jsonl"`)
	out := json.NewEncoder(v.to)
	for _, e := range all {
		if out.Encode(e) != nil {
			return // the client has left
		}
	}
}
