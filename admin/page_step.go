package admin

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/dewpoint-proxy/dewpoint/admin/ui"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

var errNoStep = sorry(http.StatusNotFound, "The thread has no such step: its messages have expired, or its newest ones were not logged yet.")

// step is the page of a step: what the agent sent beside what the model saw.
func (p *pages) step(v *visit) (ui.Page, error) {
	in, err := p.readStep(v)
	if err != nil {
		return nil, err
	}
	from, _ := strconv.Atoi(v.URL.Query().Get("from"))
	in.From = max(from, 0)
	return ui.NewStep(in), nil
}

// message is the page of a whole message.
func (p *pages) message(v *visit) (ui.Page, error) {
	in, err := p.readStep(v)
	if err != nil {
		return nil, err
	}
	index, err := strconv.Atoi(v.PathValue("message"))
	part, _ := strconv.Atoi(v.URL.Query().Get("part"))
	whole, ok := ui.NewWhole(in, index, part)
	if err != nil || !ok {
		return nil, sorry(http.StatusNotFound, "The step has no such message.")
	}
	return whole, nil
}

// readStep reads what the page of a step shows.
func (p *pages) readStep(v *visit) (*ui.StepReads, error) {
	s, t, err := p.threadOf(v)
	if err != nil {
		return nil, err
	}
	at, err := strconv.Atoi(v.PathValue("at"))
	if err != nil || at < 1 || at > t.Len {
		return nil, errNoStep
	}
	title, err := p.titleFor(v, &s)
	if err != nil {
		return nil, err
	}
	steps, keys, err := p.answered(v.Context(), t)
	if err != nil {
		return nil, err
	}
	records, err := p.recorded(v.Context(), s.ID)
	if err != nil {
		return nil, err
	}
	if i, found := slices.BinarySearch(steps, at); !found {
		steps = slices.Insert(steps, i, at)
	}
	in := &ui.StepReads{
		Place: ui.Place{Session: s.ID, Thread: t.ID, Title: ui.Title(&s, title), At: at}, Thread: t, Steps: steps, Missing: v.missing(),
	}
	if one, ok := records[keys[at]]; ok {
		in.Facts = facts(&one)
	}
	if err := p.fillStep(v.Context(), in, at); err != nil {
		return nil, err
	}
	if in.Missing == ui.NotMissing {
		err = p.noteRead(v.Request, ui.SessionURL(s.ID), s.Tenant)
	}
	return in, err
}

// fillStep reads the messages of a step and projects the view of it.
func (p *pages) fillStep(ctx context.Context, in *ui.StepReads, at int) error {
	h, err := p.readHistory(ctx, in.Thread)
	if err != nil {
		return missingFor(in, err)
	}
	if n := slices.Index(in.Steps, at); n > 0 {
		in.Fresh = freshAt(h, in.Steps[n-1], at)
	}
	if at < len(h.chain) {
		h.rewind(at)
	}
	in.Applied = h.thread.Condensations
	entries := h.messages()
	past, err := p.past(ctx, h.thread, entries, "")
	if err != nil {
		in.Messages = p.contents(in, entries, false)
		for _, m := range in.Messages {
			in.Sent.Events, in.Sent.Tokens = in.Sent.Events+1, in.Sent.Tokens+m.Tokens
		}
		return missingFor(in, err)
	}
	view, err := p.o.Forwarder.Show(past)
	if err != nil {
		return err //nolint:wrapcheck // it says what it did
	}
	in.Messages = p.contents(in, entries, in.Missing == ui.NotMissing)
	in.Applied, in.Sent, in.Saw = view.View.Applied, view.Before, view.After
	in.View = p.seen(in, &shown{Shown: view, thread: h.thread, entries: entries})
	return nil
}

// freshAt returns the condensations that existed at a position but not at the one before.
func freshAt(h *history, before, at int) (fresh []session.CondensationID) {
	now, then := *h, *h
	if at < len(h.chain) {
		now.rewind(at)
	}
	then.rewind(before)
	for _, c := range now.thread.Condensations {
		if !slices.ContainsFunc(then.thread.Condensations, func(o session.Condensation) bool { return o.ID == c.ID }) {
			fresh = append(fresh, c.ID)
		}
	}
	return fresh
}

// missingFor notes in a page why it has no content, for an error that does not keep the rest from being shown.
func missingFor(in *ui.StepReads, err error) error {
	var f *Fault
	if !errors.As(err, &f) {
		return err
	}
	switch f {
	case errIncomplete:
		in.Missing = ui.Incomplete
	case errThreadTooLarge:
		in.Missing = ui.TooLarge
	default:
		if in.Missing == ui.NotMissing {
			in.Missing = ui.NotKept
		}
	}
	return nil
}

// contents returns messages as they are shown, with or without their content.
func (p *pages) contents(in *ui.StepReads, entries []entry, content bool) []ui.Message {
	out := make([]ui.Message, len(entries))
	calls := sync.OnceValue(func() map[string]string { return p.callNames(in.Thread.Dialect, entries) })
	for i, e := range entries {
		out[i] = ui.Message{Pos: e.Pos, Kind: e.Kind, Tokens: e.Tokens}
		if content && len(e.Payload) > 0 {
			out[i].Content = sync.OnceValue(func() *session.Content {
				c := p.content(in.Thread.Dialect, e.Payload)
				if c.Name == "" && c.Result != "" {
					c.Name = calls()[c.Result]
				}
				return c
			})
		}
	}
	return out
}

// callNames returns the names of the tools that were called, by the ids of the calls.
func (p *pages) callNames(protocol string, entries []entry) map[string]string {
	names := map[string]string{}
	for _, e := range entries {
		if e.Kind == session.Action && len(e.Payload) > 0 {
			for _, call := range p.content(protocol, e.Payload).Calls {
				names[call.ID] = call.Name
			}
		}
	}
	return names
}

// content decodes a message. What cannot be decoded is shown as it is.
func (p *pages) content(protocol string, raw []byte) *session.Content {
	c, err := p.o.Forwarder.Read(protocol, raw)
	if err != nil {
		c = session.Content{Text: string(raw)}
	}
	return &c
}

// seen returns what the model saw.
func (p *pages) seen(in *ui.StepReads, s *shown) []ui.Seen {
	out := make([]ui.Seen, len(s.View.Items))
	for i, item := range s.View.Items {
		one := ui.Seen{Index: item.Index, Fate: ui.Kept}
		if item.Index < 0 {
			one.Index, one.Fate = -1, ""
			if in.Missing == ui.NotMissing {
				one.Record = item.Summary
			}
			out[i] = one
			continue
		}
		if one.Fate = fateOf(s, item, s.Messages[i]); one.Fate != ui.Kept && in.Missing == ui.NotMissing {
			one.Content = sync.OnceValue(func() *session.Content { return p.content(in.Thread.Dialect, s.Messages[i]) })
		}
		out[i] = one
	}
	return out
}

// fateOf returns what became of a message that is shown.
func fateOf(s *shown, item session.Item, sent []byte) ui.Fate {
	switch original := s.entries[item.Index].Payload; {
	case item.Trim != nil:
		return ui.Trimmed
	case !bytes.Equal(item.Raw, original):
		return ui.Replaced
	case item.Added != "":
		return ui.Extended
	case item.Strip && !bytes.Equal(sent, original):
		return ui.Stripped
	}
	return ui.Kept
}

var _ Forwarder = (*engine.Engine)(nil)

// request finds the step of a request.
func (p *pages) request(v *visit) (ui.Page, error) {
	return nil, p.findRequest(v, v.PathValue("request"))
}

// findRequest returns a redirect to the step of a request, or why there is none.
func (p *pages) findRequest(v *visit, id string) error {
	if !validRequest.MatchString(id) {
		return errNoStepOfRequest
	}
	one, err := p.recordedStep(v.Request, "", id)
	if err != nil {
		return replaceNotFound(err, errNoStepOfRequest)
	}
	t, err := p.o.Store.Thread(v.Context(), one.Thread)
	if err != nil {
		return replaceNotFound(err, errNoStepOfRequest)
	}
	if !v.who.sees(t.Tenant) {
		return errNoStepOfRequest
	}
	_, keys, err := p.answered(v.Context(), t)
	if err != nil {
		return err
	}
	key := session.RequestKey(id)
	for at, one := range keys {
		if one == key {
			return redirect{ui.StepURL(t.Session, t.ID, at)}
		}
	}
	return redirect{ui.SessionURL(t.Session) + "?thread=" + string(t.ID)}
}

var errNoStepOfRequest = sorry(http.StatusNotFound,
	"No request has this id. It is in the header X-Dewpoint-Request-Id of each answer, and is known for 45 days at most.")
