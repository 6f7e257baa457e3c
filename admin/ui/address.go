package ui

import (
	"fmt"
	"net/url"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Link is a link with its text. A link without an address is plain text.
type Link struct{ Text, URL string }

func (p Place) sessionURL() string {
	if p.File != "" {
		return "#top"
	}
	return "/s/" + url.PathEscape(string(p.Session))
}

// SessionURL returns the address of a session's page.
func SessionURL(id session.SessionID) string { return Place{Session: id}.sessionURL() }

func (p Place) threadURL() string { return p.sessionURL() + "/" + url.PathEscape(string(p.Thread)) }

func (p Place) stepURL(at int) string {
	if p.File != "" {
		return fmt.Sprintf("#step-%d", at)
	}
	return fmt.Sprintf("%s/%d", p.threadURL(), at)
}

// StepURL returns the address of the page of a step.
func StepURL(s session.SessionID, t session.ThreadID, at int) string {
	return Place{Session: s, Thread: t}.stepURL(at)
}

// fromURL returns the address of a step's messages from one on.
func (p Place) fromURL(index int) string {
	return fmt.Sprintf("%s?from=%d#m%d", p.stepURL(p.At), index, index)
}

func (p Place) messageURL(index int) string {
	if p.File != "" {
		return ""
	}
	return fmt.Sprintf("%s/m/%d", p.stepURL(p.At), index)
}

func (p Place) condensationURL(id session.CondensationID) string {
	if p.File != "" {
		return ""
	}
	return fmt.Sprintf("%s/c/%s.%d", p.threadURL(), url.PathEscape(string(id.Thread)), id.Seq)
}

// CondensationURL returns the address of the page of a thread's condensation.
func CondensationURL(t *session.Thread, id session.CondensationID) string {
	return Place{Session: t.Session, Thread: t.ID}.condensationURL(id)
}
