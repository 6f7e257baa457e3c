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

// maxEntries bounds what is read of the logs of one thread and its ancestors for a response.
const maxEntries = 200_000

// entry is a log entry and the thread whose log it is in.
type entry struct {
	session.Event
	thread session.ThreadID
}

// history is the logged history of a thread.
type history struct {
	thread session.Thread
	chain  []entry // the message at position p is chain[p-1]
	system []entry // the system messages last seen
	own    []entry // all entries of the thread's own log

	read  int   // entries of all logs so far
	bytes int64 // of their messages
}

// readHistory collects a thread's history from its own log and the logs of the threads it was forked from.
func (a *api) readHistory(ctx context.Context, t session.Thread) (*history, error) {
	h := &history{thread: t, chain: make([]entry, t.Len)}
	systemFound := false
	at, upTo := t, t.Len
	var system []entry // of all logs, oldest first
	for {
		entries, err := a.readLog(ctx, h, at)
		if err != nil {
			return nil, err
		}
		if h.own == nil {
			h.own = entries
		}
		for _, e := range entries {
			if e.Pos > at.ForkAt && e.Pos <= upTo {
				h.chain[e.Pos-1] = e
			}
		}
		system = slices.Concat(systemBefore(entries, upTo, at.ID != t.ID), system)
		if !systemFound {
			h.system, systemFound = findSystem(entries, t.System)
		}
		if at.ForkAt == 0 || at.Parent == "" {
			break
		}
		upTo = min(upTo, at.ForkAt)
		if at, err = a.o.Store.Thread(ctx, at.Parent); err != nil {
			return nil, readLogError(err)
		}
	}
	if t.Purpose == session.PurposeKept {
		h.system = inForce(system)
	}
	if !systemFound || slices.ContainsFunc(h.chain, func(e entry) bool { return e.thread == "" }) {
		return nil, errIncomplete
	}
	return h, nil
}

// systemBefore returns the system messages among the entries of a log. If it is the log of a thread that was forked at position upTo, it leaves
// out those that were logged after that.
func systemBefore(entries []entry, upTo int, forked bool) (system []entry) {
	end := len(entries)
	for forked && end > 0 && (entries[end-1].Pos == 0 || entries[end-1].Pos > upTo) {
		end--
	}
	for _, e := range entries[:end] {
		if e.Kind == session.System {
			system = append(system, e)
		}
	}
	return system
}

// inForce returns those of the logged system messages that belong to a history which upstream keeps.
func inForce(logged []entry) (system []entry) {
	events := make([]session.Event, len(logged))
	for i, e := range logged {
		events[i] = e.Event
	}
	alone, others := session.SystemInForce(events)
	for _, e := range slices.Concat(alone, others) {
		i := slices.IndexFunc(logged, func(l entry) bool { return l.Seq == e.Seq && l.Time.Equal(e.Time) })
		system = append(system, logged[i])
	}
	return system
}

// readLog reads a thread's log for a history, which may read maxEntries entries and MaxBytes of messages in total.
func (a *api) readLog(ctx context.Context, h *history, t session.Thread) ([]entry, error) {
	out := []entry{}
	for page, err := range session.ReadLog(ctx, a.o.Store, t.ID, int(a.o.MaxBytes-h.bytes)) {
		if h.read += len(page); errors.Is(err, session.ErrTooLarge) || h.read > maxEntries {
			return nil, errThreadTooLarge
		}
		if err != nil {
			return nil, readLogError(err)
		}
		for _, e := range page {
			out = append(out, entry{Event: e, thread: t.ID})
			h.bytes += int64(len(e.Payload))
		}
	}
	return out, nil
}

// readLogError wraps an error from reading a log. A log that disappears while it is read is incomplete.
func readLogError(err error) error {
	return fmt.Errorf("read log: %w", replaceNotFound(err, errIncomplete))
}

// findSystem returns the newest group of system messages with the given digest.
func findSystem(entries []entry, digest session.Hash) ([]entry, bool) {
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

// newestSystem returns the system messages of the last request that brought any, and the entries logged before them. The
// system messages of one request are adjacent and share a timestamp.
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

// messages returns the history in the client's order: each system message follows the message that it followed when it
// was logged.
func (h *history) messages() []entry {
	out := make([]entry, 0, len(h.chain)+len(h.system))
	system := h.system
	for p := 0; p <= len(h.chain); p++ {
		if p > 0 {
			out = append(out, h.chain[p-1])
		}
		for len(system) > 0 && (system[0].After <= p || p == len(h.chain)) {
			out = append(out, system[0])
			system = system[1:]
		}
	}
	return out
}

// past returns the history for the engine to show, with the summaries of the thread's condensations.
func (a *api) past(ctx context.Context, t session.Thread, entries []entry, model string) (engine.Past, error) {
	p := engine.Past{Tenant: t.Tenant, Model: model, Purpose: t.Purpose, Dialect: t.Dialect, Condensations: slices.Clone(t.Condensations)}
	for _, e := range entries {
		if len(e.Payload) == 0 {
			return p, fault(http.StatusConflict, "content_not_kept",
				"The view cannot be shown: messages are not kept (store.content is false), were encrypted under a key that is not configured, or are damaged.")
		}
		p.Messages, p.Kinds = append(p.Messages, e.Payload), append(p.Kinds, e.Kind)
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

// summary reads a condensation's summary. It returns "" if the summary is lost or cannot be decrypted.
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

// rewind takes h back to an earlier state if the query has a number of messages (at) or the ID of the request that brought them (request).
func (a *api) rewind(r *http.Request, q *query, h *history) error {
	at, id := q.number("at", 0, max(len(h.chain), 1)), q.text("request")
	if q.err != nil {
		return q.err
	}
	if at > 0 && id != "" {
		return badParam("at", "Give either a position or a request.")
	}
	if id != "" {
		answers, err := a.o.Store.Answers(r.Context(), h.thread.ID)
		if err != nil {
			return err // it names its operation
		}
		key := session.RequestKey(id)
		i := slices.IndexFunc(answers, func(a session.Answer) bool { return a.Request == key })
		if i >= 0 {
			at = answers[i].Pos
		}
		if i < 0 || at > len(h.chain) {
			return fault(http.StatusNotFound, "request_not_found",
				"The thread has no answered request with this ID. The log line of the request names its thread.")
		}
	}
	if at > 0 && at < len(h.chain) {
		h.rewind(at)
	}
	return nil
}

// rewind takes h back to its state at position at: it keeps the messages up to there, the condensations that existed then, and the system
// messages of that time, as far as the thread's own log has them.
func (h *history) rewind(at int) {
	end := h.thread.Seq + 1 // the first later entry of the thread's own log
	if i := slices.IndexFunc(h.own, func(e entry) bool { return e.Pos > at }); i >= 0 {
		logged := h.own[i].Time
		for i > 0 && h.own[i-1].Kind == session.System && h.own[i-1].Time.Equal(logged) {
			i-- // system messages of the same request
		}
		end = h.own[i].Seq
		if _, system := newestSystem(h.own[:i]); len(system) > 0 && h.thread.Purpose != session.PurposeKept {
			h.system = system
		}
	}
	if h.thread.Purpose == session.PurposeKept {
		h.system = slices.DeleteFunc(slices.Clone(h.system), func(e entry) bool { return e.After >= at })
	}
	h.chain, h.thread.Len = h.chain[:at], at
	h.thread.Condensations = slices.DeleteFunc(slices.Clone(h.thread.Condensations), func(c session.Condensation) bool {
		return c.Prefix > at || c.ID.Thread == h.thread.ID && c.ID.Seq >= end
	})
}
