package admin

import (
	"github.com/dewpoint-proxy/dewpoint/admin/ui"
)

const recentSessions = 12

// overview is the first page.
func (p *pages) overview(v *visit) (ui.Page, error) {
	out := ui.Overview{Title: "Overview", CanMode: v.who.mayChange() && v.who.csrf != ""}
	all, err := p.list.sessions(v.Context())
	if err != nil {
		return nil, err
	}
	for i := range all {
		if len(out.Recent) == recentSessions {
			break
		}
		if !v.who.sees(all[i].Tenant) {
			continue
		}
		row, err := p.sessionRow(v, &all[i])
		if err != nil {
			return nil, err
		}
		out.Recent = append(out.Recent, row)
	}
	if len(out.Recent) == 0 {
		out.Empty = "Nothing has gone through the proxy yet, or all of it has expired. Point an agent at it: dewpoint run -- your-agent."
	}
	out.Modes = p.modes(v)
	return out, nil
}

var modeWords = map[Mode]string{ModeOn: "on", ModeObserve: "observed only: nothing is changed", ModeOff: "off: everything is forwarded as it is"}

// modes says for each tenant whether its histories are condensed.
func (p *pages) modes(v *visit) (all []ui.Mode) {
	for _, t := range p.o.Settings.Tenants() {
		if !v.who.sees(t.Name) {
			continue
		}
		m := ui.Mode{Tenant: t.Name, Words: modeWords[t.Condensing.InForce], URL: "/condensing?tenant=" + t.Name}
		if o := t.Condensing.Override; o != nil {
			m.Changed, m.Until = true, ui.When(o.Until)+" UTC"
			if o.Reason != "" {
				m.Until += ": " + o.Reason
			}
		}
		all = append(all, m)
	}
	return all
}
