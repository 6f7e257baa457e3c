package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// auditor compares what agents hold with what the store holds.
type auditor struct {
	store   session.Store
	dialect *chat.Dialect
	tally   *tally
}

func newAuditor(store session.Store, t *tally) *auditor {
	return &auditor{store: store, dialect: chat.New(chat.Options{}), tally: t}
}

// held is a line as the proxy has it, were it only for what its client sent last.
type held struct {
	*line
	history *session.History
	thread  session.ThreadID
}

// scope is in which space a line's history is looked for.
func (l *line) scope() session.Scope {
	key := l.metadata
	for _, name := range []string{"X-Session-Id", "X-Dewpoint-Session"} {
		if v := l.header.Get(name); v != "" {
			key = v
		}
	}
	return session.Scope{Tenant: l.family.tenant.name, Key: key}
}

func (a *auditor) held(l *line) (held, error) {
	split, err := a.dialect.Split("", l.last.sent)
	if err != nil {
		return held{}, fmt.Errorf("split what was sent: %w", err)
	}
	return held{
		line: l, history: session.NewHistory(session.Secret(secret).Seed(l.scope()), split.Messages),
		thread: session.ThreadID(l.placed[len(l.placed)-1].thread),
	}, nil
}

// settling is how long a log may take to be written after its answer, on a busy machine.
const settling = 5 * time.Second

// line checks one line's log, and what follows from it.
func (a *auditor) line(ctx context.Context, l *line) error {
	h, err := a.held(l)
	if err != nil {
		return err
	}
	for end := time.Now().Add(settling); ; {
		err := a.whole(ctx, h)
		if err == nil {
			break
		}
		if time.Now().After(end) || !sleep(ctx, 20*time.Millisecond) {
			return err
		}
	}
	a.tally.count(groupChecked, "logs compared, message by message")
	return errors.Join(a.condensations(ctx, h), a.view(ctx, h))
}

// whole checks that a thread's log holds each message of the history, in order, byte for byte, and nothing else.
func (a *auditor) whole(ctx context.Context, h held) error {
	thread, err := a.thread(ctx, h.thread)
	if err != nil {
		return err
	}
	if thread.Tenant != h.family.tenant.name {
		return fmt.Errorf("thread %s is %s's", thread.ID, thread.Tenant)
	}
	if thread.Len != h.history.Len() || thread.Head != h.history.Head() {
		return fmt.Errorf("thread %s has %d messages up to %s, the client %d up to %s",
			thread.ID, thread.Len, thread.Head, h.history.Len(), h.history.Head())
	}
	log, err := a.log(ctx, h.thread)
	if err != nil {
		return err
	}
	if len(log) != h.history.Len() {
		return fmt.Errorf("the log of thread %s holds %d messages, the client %d", thread.ID, len(log), h.history.Len())
	}
	for p := 1; p <= h.history.Len(); p++ {
		e, m := log[p-1], h.history.Message(p)
		if e.Pos != p || e.Kind != m.Kind || e.Digest != m.Digest || e.Chain != h.history.Chain[p] || !bytes.Equal(e.Payload, m.Raw) {
			return fmt.Errorf("thread %s, position %d: logged is %d %s %s, sent was %s", thread.ID, p, e.Pos, e.Kind, e.Payload, m.Raw)
		}
	}
	a.tally.add(groupChecked, "messages found in their log", len(log))
	return nil
}

func (a *auditor) thread(ctx context.Context, id session.ThreadID) (session.Thread, error) {
	t, err := a.store.Thread(ctx, id)
	if err != nil {
		return t, fmt.Errorf("read thread %q: %w", id, err)
	}
	return t, nil
}

// log gives a thread's messages, those that it shares with its parent included.
func (a *auditor) log(ctx context.Context, id session.ThreadID) ([]session.Event, error) {
	t, err := a.thread(ctx, id)
	if err != nil {
		return nil, err
	}
	var log []session.Event
	if t.ForkAt > 0 {
		parent, err := a.log(ctx, t.Parent)
		if err != nil {
			return nil, err
		}
		if len(parent) < t.ForkAt {
			return nil, fmt.Errorf("thread %s shares %d messages with %s, which has %d", id, t.ForkAt, t.Parent, len(parent))
		}
		log = append(log, parent[:t.ForkAt]...)
	}
	entries, err := a.entries(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Pos > 0 {
			log = append(log, e)
		}
	}
	return log, nil
}

// entries gives all that a thread's own log holds.
func (a *auditor) entries(ctx context.Context, id session.ThreadID) ([]session.Event, error) {
	var all []session.Event
	for page, err := range session.ReadLog(ctx, a.store, id, math.MaxInt) {
		if err != nil {
			return nil, fmt.Errorf("read the log of thread %s: %w", id, err)
		}
		all = append(all, page...)
	}
	return all, nil
}

// condensations checks that each hides messages that there are, under the chain hash of its prefix.
func (a *auditor) condensations(ctx context.Context, h held) error {
	thread, err := a.thread(ctx, h.thread)
	if err != nil {
		return err
	}
	for _, c := range thread.Condensations {
		if c.Prefix > thread.Len || !h.history.Covers(c.Prefix, c.Hash) {
			return fmt.Errorf("condensation %v covers %d messages up to %s, of %d", c.ID, c.Prefix, c.Hash, thread.Len)
		}
		for _, r := range c.Forgotten {
			if r.From < 1 || r.To <= r.From || r.To > c.Prefix+1 {
				return fmt.Errorf("condensation %v forgets %d to %d of %d messages", c.ID, r.From, r.To-1, c.Prefix)
			}
		}
		if c.SummaryTokens > 0 {
			if _, err := a.store.Summary(ctx, c.ID); err != nil {
				return fmt.Errorf("condensation %v: %w", c.ID, err)
			}
		}
		a.tally.count(groupChecked, "condensations in the logs, forks' included")
	}
	return nil
}

// view makes the view again, from the log alone, and compares it with what was forwarded last.
func (a *auditor) view(ctx context.Context, h held) error {
	if !h.family.tenant.condenser.logs {
		a.tally.count(groupChecked, "views that depend on more than the log, not made again")
		return nil
	}
	thread, err := a.thread(ctx, h.thread)
	if err != nil {
		return err
	}
	all := append([]session.Condensation(nil), thread.Condensations...)
	for i := range all {
		if all[i].SummaryTokens > 0 {
			if all[i].Summary, err = a.store.Summary(ctx, all[i].ID); err != nil {
				return fmt.Errorf("read summary: %w", err)
			}
		}
	}
	v := session.Project(h.history, all)
	want := a.render(&v)
	if got := messagesOf(h.last.newest.Load().body); !bytes.Equal(got, want) {
		return fmt.Errorf("thread %s: forwarded was %d bytes of messages, the log gives %d: %s", h.thread, len(got), len(want), difference(got, want))
	}
	a.tally.count(groupChecked, "views made again from the log")
	return nil
}

// render writes a view's messages as they are forwarded.
func (a *auditor) render(v *session.View) []byte {
	condense.Render(a.dialect, v)
	out := make([][]byte, len(v.Items))
	for i, item := range v.Items {
		if out[i] = item.Raw; item.Index < 0 {
			out[i] = a.dialect.Note(item.Summary)
		}
	}
	return bytes.Join(out, []byte("\n"))
}

func messagesOf(body []byte) []byte {
	var request struct{ Messages []json.RawMessage }
	_ = json.Unmarshal(body, &request) // it was accepted upstream
	out := make([][]byte, len(request.Messages))
	for i, m := range request.Messages {
		out[i] = m
	}
	return bytes.Join(out, []byte("\n"))
}

// difference is where two texts part.
func difference(got, want []byte) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	from := max(0, at-100)
	return fmt.Sprintf("%q, want %q", got[from:min(len(got), at+200)], want[from:min(len(want), at+200)])
}
