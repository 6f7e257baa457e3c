package admin

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/admin/ui"
	"github.com/dewpoint-proxy/dewpoint/session"
)

var errNoCondensation = sorry(http.StatusNotFound, "The thread has no such condensation.")

// condensation is the page of a condensation.
func (p *pages) condensation(v *visit) (ui.Page, error) {
	s, t, err := p.threadOf(v)
	if err != nil {
		return nil, err
	}
	thread, number, _ := strings.Cut(v.PathValue("condensation"), ".")
	seq, _ := strconv.ParseUint(number, 10, 64)
	id := session.CondensationID{Thread: session.ThreadID(thread), Seq: seq}
	i := slices.IndexFunc(t.Condensations, func(c session.Condensation) bool { return c.ID == id })
	if i < 0 {
		return nil, errNoCondensation
	}
	title, err := p.titleFor(v, &s)
	if err != nil {
		return nil, err
	}
	in := ui.CondensationReads{
		Place: ui.Place{Session: s.ID, Thread: t.ID, Title: ui.Title(&s, title)}, Thread: t, Missing: v.missing(), One: t.Condensations[i],
	}
	if in.Steps, _, err = p.answered(v.Context(), t); err != nil {
		return nil, err
	}
	if in.MadeAt, err = p.madeAt(v.Context(), t, &in.One); err != nil {
		return nil, err
	}
	if in.Missing == ui.NotMissing {
		if err = p.fillCondensation(v.Context(), &in, i); err == nil {
			err = p.noteRead(v.Request, ui.SessionURL(s.ID), s.Tenant)
		}
	}
	return ui.NewCondensation(&in), err
}

// fillCondensation reads the records and messages that a condensation's page compares.
func (p *pages) fillCondensation(ctx context.Context, in *ui.CondensationReads, i int) (err error) {
	if in.Text, err = p.summary(ctx, in.One.ID); err != nil {
		return err
	}
	for _, c := range slices.Backward(in.Thread.Condensations[:i]) {
		if c.SummaryTokens > 0 && c.Added == 0 {
			in.Before, err = p.summary(ctx, c.ID)
			break
		}
	}
	if err != nil {
		return err
	}
	h, err := p.readHistory(ctx, in.Thread)
	var f *Fault
	if errors.As(err, &f) {
		return nil // the records can be compared without the messages
	}
	if err != nil {
		return err
	}
	reads := ui.StepReads{Thread: in.Thread}
	in.Messages = p.contents(&reads, h.messages(), true)
	return nil
}

// madeAt returns the position up to which a thread's history was logged when a condensation was made.
func (a *api) madeAt(ctx context.Context, t session.Thread, c *session.Condensation) (int, error) {
	if c.ID.Thread != t.ID {
		return c.Prefix, nil
	}
	events, err := a.o.Store.Events(ctx, t.ID, c.ID.Seq, -titleEntries)
	if err != nil {
		return c.Prefix, replaceNotFound(err, errIncomplete)
	}
	at := c.Prefix
	for _, e := range events {
		at = max(at, e.Pos)
	}
	return at, nil
}
