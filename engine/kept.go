package engine

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Answers that upstream keeps are not logged, since most clients send them back. Some are kept in memory for clients that do not.
const (
	answersKept   = 1024
	maxAnswerKept = 16 << 10 // bytes
)

// kept is what a turn knows about a history that upstream keeps. The request brings only new messages. If the log has all earlier ones, the
// history can be condensed: the view is sent in place of the id of the answer that the request continues. Upstream stores it together with the
// next answer, so that later requests need not send it again.
type kept struct {
	own    *dialect.Request  // the request as the client sent it, if the turn's own has the whole history; else nil
	answer []session.Message // that the request continues, if the log lacks it; read together with own
	stored session.Stored    // under the id of that answer
	failed bool              // what is stored could not be read
	unread bool              // the history could not be condensed because the log does not have all of it
}

// remote reports whether upstream keeps the history, and the request brings only new messages.
func (t *Turn) remote() bool { return t.in.Split.Kept != (session.Kept{}) }

// unknown reports whether upstream keeps the history, and the turn has only its end.
func (t *Turn) unknown() bool { return t.remote() && t.kept.own == nil }

// NeedsText reports whether Answered reads the request's text: if upstream keeps the history, the log is written only then.
func (t *Turn) NeedsText() bool { return t.Recognised() && t.remote() }

// client returns the request as the client sent it.
func (t *Turn) client() *dialect.Request {
	if t.kept.own != nil {
		return t.kept.own
	}
	return t.in.Split
}

// passive returns a copy of the tenant that changes no request.
func (t *Tenant) passive() *Tenant {
	quiet := *t
	quiet.Observe, quiet.Condenser = true, condense.Noop{}
	return &quiet
}

// beginKept is Begin for a history that upstream keeps. Unless all of it is known, the request is forwarded as it is.
func (t *Turn) beginKept(ctx context.Context) *Form {
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	if t.replaceable() {
		stored, err := t.registry.Stored(ctx, &t.place, t.in.Split.Kept.Answer)
		t.kept.stored, t.kept.failed = stored, err != nil
	}
	_, idle := t.in.Tenant.Condenser.(condense.Noop)
	if t.in.Wish != WishOff && !t.in.Tenant.Off && !t.in.Compacts && !t.in.Asks && !idle {
		if applied, known := t.readKept(ctx); known {
			return t.form(applied)
		}
		t.kept.unread = !t.in.Tenant.Passes()
	}
	t.in.Tenant = t.in.Tenant.passive()
	return t.form(nil)
}

// replaceable reports whether the request can bring its history instead of naming it.
func (t *Turn) replaceable() bool {
	_, can := t.in.Dialect.(dialect.Keeper)
	return can && t.in.Split.Kept.Answer != "" && t.in.Split.Kept.Conversation == ""
}

// readKept makes the history that upstream keeps the turn's own and returns its condensations. It changes nothing if not all of it is known.
func (t *Turn) readKept(ctx context.Context) (applied []session.Condensation, known bool) {
	d, keeps := t.in.Dialect.(dialect.Keeper)
	if !keeps || !t.kept.stored.Whole {
		return nil, false
	}
	answer := t.unloggedAnswer(ctx)
	earlier, whole, err := t.loggedMessages(ctx, answer)
	if err != nil {
		return nil, false
	}
	if !whole || t.lacksAnswer(answer) {
		t.kept.stored.Whole = false
		return nil, false
	}
	request := d.WithHistory(t.in.Split, earlier)
	if request == nil {
		return nil, false
	}
	history := session.NewHistory(t.history.Chain[0], request.Messages)
	place := t.place.Over(history)
	if applied, err = t.registry.Condensations(ctx, &place); err != nil {
		return nil, false
	}
	t.kept.own, t.kept.answer, t.in.Split, t.history, t.place = t.in.Split, t.splitLogged(answer), request, history, place
	t.prepareCounting()
	return applied, true
}

// lacksAnswer reports whether the answer that the request continues is neither logged nor the given one.
func (t *Turn) lacksAnswer(unlogged []byte) bool {
	return t.place.Thread.Purpose != session.PurposeKept && len(unlogged) == 0
}

// loggedMessages returns the messages that the log has of a history which upstream keeps, followed by those of an answer that it lacks. It also
// reports whether they are the whole history up to the answer that the request continues.
func (t *Turn) loggedMessages(ctx context.Context, answer []byte) (messages []session.Message, whole bool, err error) {
	logged, err := t.registry.Logged(ctx, &t.place)
	if err != nil {
		return nil, false, fmt.Errorf("read history: %w", err)
	}
	var payloads [][]byte
	for i := range logged.Events {
		payloads = append(payloads, logged.Events[i].Payload)
	}
	if len(answer) > 0 {
		payloads = append(payloads, answer)
	}
	if len(payloads) == 0 {
		return nil, false, nil
	}
	messages = splitMessages(t.in.Dialect, payloads)
	if len(messages) < len(logged.Events) {
		return nil, false, nil // they were logged by another version, or messages of the model follow each other
	}
	messages, whole = slices.Clone(messages), logged.Whole
	for i := range logged.Events {
		e, m := &logged.Events[i], &messages[i]
		whole = whole && (e.Pos == 0) == (e.Kind == session.System) && (e.Pos == 0 || m.Digest == e.Digest)
		if m.Kind != e.Kind && e.Kind == session.System {
			m.Spoken = m.Kind
		}
		m.Kind = e.Kind
	}
	return messages, whole, nil
}

// unloggedAnswer returns the answer that the request continues, if it is known and not logged as messages.
func (t *Turn) unloggedAnswer(ctx context.Context) []byte {
	answer := t.in.Split.Kept.Answer
	if known, ok := t.engine.memory.answers.Get(session.KeptTrace(t.history.Chain[0], answer)); ok {
		return known
	}
	if answer == "" || t.place.New || t.place.Thread.Purpose == session.PurposeKept {
		return nil
	}
	items, _ := t.registry.AnswerItems(ctx, &t.place, answer) // another process may have relayed it; what cannot be read is not known
	return items
}

// continues reports whether a later request may continue the answer by its id, and the log then take it from what is remembered. If upstream
// stores more of it than was relayed, the history could not be sent in place of the id.
func (t *Turn) continues(a dialect.Answer) bool {
	_, keeps := t.in.Dialect.(dialect.Keeper)
	return a.ID != "" && (a.Whole || !keeps)
}

// splitLogged splits an answer into messages.
func (t *Turn) splitLogged(said []byte) []session.Message {
	if len(said) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(splitMessage(t.in.Dialect, said)), func(m session.Message) bool { return m.Kind == session.System })
}

// withKept returns the form whose history also holds what the log has of the history that upstream keeps.
func (f *Form) withKept(ctx context.Context) (*Form, error) {
	if !f.turn.unknown() {
		return f, nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.turn.engine.o.Limits.Store)
	defer cancel()
	logged, _, err := f.turn.loggedMessages(ctx, f.turn.unloggedAnswer(ctx))
	if err != nil {
		return f, err
	}
	logged = slices.DeleteFunc(logged, func(m session.Message) bool { return m.Kind == session.System })
	request := *f.turn.in.Split
	request.Messages = slices.Concat(logged, f.turn.in.Split.Messages)
	whole := *f.turn
	whole.in.Split, whole.history = &request, session.NewHistory(f.turn.history.Chain[0], request.Messages)
	whole.prepareCounting()
	return whole.form(nil), nil
}

// said returns what is logged of the request: copies of its messages, after those of the answer before it that the log lacks. They are logged
// together with the answer: upstream does not keep a request without one either. It must be called while the body is held.
//
// A question for a record is not part of the history, and if upstream compacts what it keeps, no message is added to that.
func (t *Turn) said(ctx context.Context) session.Said {
	t.counted()
	own := t.client().Messages
	if t.in.Asks || t.in.Compacts && !slices.ContainsFunc(own, func(m session.Message) bool { return m.Kind != session.System }) {
		return session.Said{}
	}
	answer, partial := t.kept.answer, t.in.Compacts || t.in.Asks
	if t.kept.own == nil {
		unlogged := t.unloggedAnswer(ctx)
		answer, partial = t.splitLogged(unlogged), partial || t.lacksAnswer(unlogged)
	}
	said := session.Said{Before: len(answer), Messages: slices.Clip(answer), Partial: partial}
	for i := range own {
		if m := own[i]; m.Kind != session.System {
			m.Raw = bytes.Clone(m.Raw)
			said.Messages = append(said.Messages, m)
		}
	}
	return said
}

// isStored reports whether the view is what upstream stores under the id that the client sent.
func (f *Form) isStored() bool {
	stored := f.turn.kept.stored
	return f.turn.kept.own != nil && !stored.Other && f.toStore() == stored
}

// toStore describes the view as something that upstream stores.
func (f *Form) toStore() session.Stored {
	shown, logged := session.Stored{Whole: true}, true
	if n := len(f.shown.applied); n > 0 {
		shown.View = f.shown.applied[n-1].ID
		logged = slices.ContainsFunc(f.place.Thread.Condensations, func(c session.Condensation) bool { return c.ID == shown.View })
	}
	shown.Other = !logged || f.shown.reshaped || f.bound != bound{} || f.alternates()
	return shown
}

// logKept logs a request and its answer that continue a history kept by upstream.
func (f *Form) logKept(ctx context.Context, a dialect.Answer, traces []session.Hash) error {
	said := f.logged.said
	said.Traces = traces
	stored := f.turn.kept.stored
	switch {
	case f.rewrites():
		stored = f.toStore()
	case f.turn.kept.failed: // without it, the history would never be known again
		stored, _ = f.turn.registry.Stored(ctx, f.at(), f.turn.in.Split.Kept.Answer)
	}
	if stored.Whole && !said.Partial && a.Whole && a.ID != "" && f.turn.in.Split.Stores {
		said.Traces = append(said.Traces, session.StoredTrace(f.turn.history.Chain[0], a.ID, stored))
	}
	said.Messages = append(slices.Clip(said.Messages), f.turn.splitLogged(a.Said)...)
	for i := range said.Messages {
		said.Tokens = append(said.Tokens, f.turn.tokens(&said.Messages[i]))
	}
	place := f.at().Over(f.turn.clientHistory())
	return f.turn.registry.AppendKept(ctx, &place, f.turn.in.Split.Kept, said)
}

// clientHistory returns the messages that the client sent as a history of their own.
func (t *Turn) clientHistory() *session.History {
	if t.kept.own == nil {
		return t.history
	}
	return session.NewHistory(t.history.Chain[0], t.kept.own.Messages)
}

// keptTraces returns the traces by which a later request may continue from an answer that upstream keeps.
func (t *Turn) keptTraces(a dialect.Answer) (traces []session.Hash) {
	seed := t.history.Chain[0]
	for _, id := range [...]string{a.ID, t.in.Split.Kept.Conversation} {
		if id != "" && t.in.Split.Stores {
			traces = append(traces, session.KeptTrace(seed, id))
		}
	}
	return traces
}
