package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Bounds of what is read of one thread's log for an answer, that of its ancestors included.
const (
	readAtOnce  = 500
	mostEntries = 200_000
	usualBytes  = 128 << 20 // of messages
)

// entry is a log entry and the thread that it stands in.
type entry struct {
	session.Event
	thread session.ThreadID
}

// log is what a thread's history was at its end, as the log has it.
type log struct {
	thread session.Thread
	chain  []entry // by position, the first is 1
	system []entry // the system messages last seen
	own    []entry // all entries of the thread's own log
}

// read collects a thread's history from its log and those of the threads that it was forked from.
func (a *api) read(ctx context.Context, t session.Thread) (*log, error) {
	rd := reader{store: a.o.Store, most: a.o.MostBytes}
	l := &log{thread: t, chain: make([]entry, t.Len)}
	known := false
	for at, upTo := t, t.Len; ; {
		entries, err := rd.entries(ctx, at)
		if err != nil {
			return nil, err
		}
		if l.own == nil {
			l.own = entries
		}
		for _, e := range entries {
			if e.Pos > at.ForkAt && e.Pos <= upTo {
				l.chain[e.Pos-1] = e
			}
		}
		if !known {
			l.system, known = systemOf(entries, t.System)
		}
		if at.ForkAt == 0 || at.Parent == "" {
			break
		}
		upTo = min(upTo, at.ForkAt)
		if at, err = a.o.Store.Thread(ctx, at.Parent); err != nil {
			return nil, incomplete(err)
		}
	}
	if !known || slices.ContainsFunc(l.chain, func(e entry) bool { return e.thread == "" }) {
		return nil, errIncomplete()
	}
	return l, nil
}

// reader reads logs within the bounds.
type reader struct {
	store session.Store
	most  int64 // bytes
	n     int
	size  int64
}

func (rd *reader) entries(ctx context.Context, t session.Thread) ([]entry, error) {
	out := []entry{}
	for from := uint64(1); from <= t.Seq; {
		page, err := rd.store.Events(ctx, t.ID, from, readAtOnce)
		if err != nil {
			return nil, incomplete(err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			out = append(out, entry{Event: e, thread: t.ID})
			rd.size += int64(len(e.Payload))
		}
		if rd.n += len(page); rd.n > mostEntries || rd.size > rd.most {
			return nil, fault(http.StatusConflict, "thread_too_large", "The log is too long to be shown whole. Read it by pages, at .../events.")
		}
		from = page[len(page)-1].Seq + 1
	}
	return out, nil
}

// incomplete is the error for a log that goes while it is read.
func incomplete(err error) error {
	return fmt.Errorf("read log: %w", unless(err, errIncomplete()))
}

func errIncomplete() *Fault {
	return fault(http.StatusConflict, "log_incomplete",
		"A part of the log is missing: it was evicted, lost in a crash, or is being deleted. The next request of the thread repairs what can be.")
}

// systemOf finds the newest system messages that are those of a thread whose digest of them is given. All that one
// request brought stand together, with one time.
func systemOf(entries []entry, digest session.Hash) ([]entry, bool) {
	if digest.IsZero() {
		return nil, true
	}
	for {
		before, group := newestSystem(entries)
		if len(group) == 0 {
			return nil, false
		}
		digests := make([]session.Hash, len(group))
		for i, e := range group {
			digests[i] = e.Digest
		}
		if session.SystemDigest(digests) == digest {
			return group, true
		}
		entries = before
	}
}

// newestSystem is the system messages that one request brought, the last that brought any, and what was logged before them.
func newestSystem(entries []entry) (before, group []entry) {
	end := len(entries)
	for end > 0 && entries[end-1].Kind != session.System {
		end--
	}
	begin := end
	for begin > 0 && entries[begin-1].Kind == session.System && entries[begin-1].Time.Equal(entries[end-1].Time) {
		begin--
	}
	return entries[:begin], entries[begin:end]
}

// messages puts the history in the client's order: each system message after the message that it followed when it was
// logged.
func (l *log) messages() []entry {
	out := make([]entry, 0, len(l.chain)+len(l.system))
	system := l.system
	for p := 0; p <= len(l.chain); p++ {
		if p > 0 {
			out = append(out, l.chain[p-1])
		}
		for len(system) > 0 && (system[0].After <= p || p == len(l.chain)) {
			out, system = append(out, system[0]), system[1:]
		}
	}
	return out
}

// past is the history for the proxy to show, with the summaries of the thread's condensations.
func (a *api) past(ctx context.Context, l *log, entries []entry, model string) (engine.Past, error) {
	t := l.thread
	p := engine.Past{Tenant: t.Tenant, Model: model, Purpose: t.Purpose, Dialect: t.Dialect, Condensations: slices.Clone(t.Condensations)}
	for _, e := range entries {
		if len(e.Payload) == 0 {
			return p, fault(http.StatusConflict, "content_not_kept", "The messages are not kept (store.content is false), or were encrypted under a key that is not configured, so what was made of them cannot be shown.")
		}
		p.Messages = append(p.Messages, e.Payload)
		if e.Kind != session.System {
			p.Chain = append(p.Chain, e.Chain)
		}
	}
	for i := range p.Condensations {
		var err error
		if p.Condensations[i].Summary, err = a.summary(ctx, p.Condensations[i].ID); err != nil {
			return p, err
		}
	}
	return p, nil
}

// summary reads a condensation's summary; it is empty if it is lost, or cannot be opened.
func (a *api) summary(ctx context.Context, id session.CondensationID) (string, error) {
	text, err := a.o.Store.Summary(ctx, id)
	switch {
	case errors.Is(err, session.ErrNotFound), errors.Is(err, session.ErrUnreadable):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read summary: %w", err)
	}
	return text, nil
}
