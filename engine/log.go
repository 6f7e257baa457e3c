package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// logWrite is the write of a turn's new messages. Fields other than said must be read only after done is closed.
type logWrite struct {
	done  chan struct{}
	place session.Resolution // of the written messages; zero if writing failed
	cause session.Cause      // why a thread began
	said  []session.Message  // if upstream keeps the history: the request's messages, after those that the log lacks
}

// finished reports whether the write has ended. A nil logWrite never does.
func (l *logWrite) finished() bool {
	if l == nil {
		return false
	}
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// Log returns a function that writes the request's new messages to the log, and reports whether there were any. The function must be
// called exactly once, in any goroutine, and releases the body at its end; the turn goes on meanwhile. If it fails, the thread's next
// request writes the messages.
func (t *Turn) Log() func(ctx context.Context) (wrote bool, err error) {
	t.in.Body.Hold() // events alias it
	l := &logWrite{done: make(chan struct{})}
	t.logged = l
	place := clonePlace(t.place)
	logged, asked := place.Logged, t.place
	return func(ctx context.Context) (bool, error) {
		defer t.in.Body.Release()
		defer close(l.done)
		if t.remote() {
			t.copyMessages(ctx)
			return false, nil
		}
		tally := t.counted().tally
		ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
		defer cancel()
		if err := t.registry.Append(ctx, &place, &tally); err != nil {
			return false, err
		}
		l.place = place.WithoutText()
		d, _ := t.registry.Diverges(ctx, &asked) // an error shows in the cause
		l.cause = d.Cause
		return place.Logged > logged, nil
	}
}

// Logs reports whether Log was called.
func (t *Turn) Logs() bool { return t.logged != nil }

// Cause returns why a thread began with this request although part of its history was known; empty if none did. It does not wait for
// the log.
func (t *Turn) Cause() session.Cause {
	switch {
	case !t.place.New:
		return ""
	case t.logged.finished():
		return t.logged.cause
	}
	return session.CauseUnread
}

// awaitLog waits until the messages of this request are written, if they are to be.
func (t *Turn) awaitLog() {
	if t.logged != nil {
		<-t.logged.done
	}
}

// Answered returns a function that logs the traces of an answer, by which its thread is recognised later. The function must be called
// exactly once, in any goroutine, and waits for the one that Log returned. If upstream keeps the history, it also logs the request, and
// holds the body until then.
//
// The echo is the answer as the client will send it back. It is nil unless upstream has to see something else in its place.
func (t *Turn) Answered(answer dialect.Answer, echo []byte) func(ctx context.Context) error {
	ids, arguments := []string(nil), slices.Clone(answer.Compactions)
	for _, c := range answer.Calls {
		ids = append(ids, c.ID)
		arguments = append(arguments, argumentTexts(c.Arguments)...)
	}
	kept := t.keptTraces(answer)
	items := t.rememberItems(answer)
	release := func() {}
	if t.remote() {
		t.in.Body.Hold() // for the system messages
		release = t.in.Body.Release
	}
	return func(ctx context.Context) error {
		defer release()
		t.awaitLog()
		if t.logged == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
		defer cancel()
		var err error
		place, seed := &t.logged.place, t.history.Chain[0]
		switch {
		case t.remote():
			err = t.logKept(ctx, answer, slices.Concat(kept, session.CallTraces(seed, ids), session.AnswerTraces(seed, answer.Text, arguments)))
		case place.Thread.ID != "":
			if answer.ID != "" && t.in.Split.Stores && len(answer.Said) <= maxAnswerKept {
				t.engine.memory.answers.Add(session.KeptTrace(seed, answer.ID), answer.Said)
			}
			err = errors.Join(t.setAside(ctx, echo), t.registry.Answered(ctx, place, answer.Text, ids, arguments, kept...))
			if len(items) > 0 {
				err = errors.Join(err, t.registry.KeepItems(ctx, place, items))
			}
		}
		if errors.Is(err, session.ErrNotFound) { // the session was deleted meanwhile
			return nil
		}
		return err
	}
}

// argumentTexts returns the strings in a tool call's arguments, at any depth. A sub-agent's task is one of them.
func argumentTexts(arguments string) []string {
	if len(arguments) > maxArguments {
		return nil
	}
	var v any
	if json.Unmarshal([]byte(arguments), &v) != nil {
		return nil
	}
	return appendStrings(nil, v)
}

// maxArguments is the size in bytes up to which a call's arguments are read as JSON.
const maxArguments = 64 << 10

// appendStrings appends the strings in a JSON value to out.
func appendStrings(out []string, v any) []string {
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, e := range v {
			out = appendStrings(out, e)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = appendStrings(out, v[key])
		}
	}
	return out
}

// remote reports whether upstream keeps the history, and the request brings only new messages. Such a request cannot be condensed.
func (t *Turn) remote() bool { return t.in.Split.Kept != (session.Kept{}) }

// passive returns a copy of the tenant that changes no request.
func (t *Tenant) passive() *Tenant {
	quiet := *t
	quiet.Observe, quiet.Condenser = true, condense.Noop{}
	return &quiet
}

// Answers that upstream keeps are not logged, since most clients send them back. Some are kept in memory for clients that do not.
const (
	answersKept   = 1024
	maxAnswerKept = 16 << 10 // bytes
)

// copyMessages copies the request's messages while its body is held. They are logged together with the answer: upstream does not keep
// a request without one either.
//
// A question for a record is not part of the history, and if upstream compacts what it keeps, no message is added to that.
func (t *Turn) copyMessages(ctx context.Context) {
	t.counted()
	if t.in.Asks || t.in.Compacts && t.history.Len() == 0 {
		return
	}
	t.logged.said = t.unloggedAnswer(ctx)
	for i := range t.in.Split.Messages {
		if m := t.in.Split.Messages[i]; m.Kind != session.System {
			m.Raw = bytes.Clone(m.Raw)
			t.logged.said = append(t.logged.said, m)
		}
	}
}

// unloggedAnswer returns the messages of the answer that the request continues, if they are not logged.
func (t *Turn) unloggedAnswer(ctx context.Context) []session.Message {
	last, known := t.engine.memory.answers.Get(session.KeptTrace(t.history.Chain[0], t.in.Split.Kept.Answer))
	if !known && !t.place.New && t.place.Thread.Purpose != session.PurposeKept { // another process relayed it
		if items, err := t.registry.NewestItems(ctx, &t.place); err == nil && len(items) > 0 {
			last = items[len(items)-1]
		}
	}
	return t.splitLogged(last)
}

// readKept adds what the log has of a history that upstream keeps to the turn's own.
func (t *Turn) readKept(ctx context.Context) error {
	if !t.remote() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	logged, err := t.registry.Logged(ctx, &t.place)
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	request := *t.in.Split
	request.Messages = nil
	for i := range logged {
		request.Messages = append(request.Messages, t.splitLogged(logged[i].Payload)...)
	}
	request.Messages = slices.Concat(request.Messages, t.unloggedAnswer(ctx), t.in.Split.Messages)
	t.in.Split, t.history = &request, session.NewHistory(t.history.Chain[0], request.Messages)
	t.prepareCounting()
	t.show(t.project(nil))
	return nil
}

// splitLogged splits an answer or a logged message into messages.
func (t *Turn) splitLogged(said []byte) []session.Message {
	if len(said) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(splitMessage(t.in.Dialect, said)), func(m session.Message) bool { return m.Kind == session.System })
}

// logKept logs a request and its answer that continue a history kept by upstream.
func (t *Turn) logKept(ctx context.Context, a dialect.Answer, traces []session.Hash) error {
	said := session.Said{Messages: append(t.logged.said, t.splitLogged(a.Said)...), Traces: traces}
	for i := range said.Messages {
		said.Tokens = append(said.Tokens, t.tokens(&said.Messages[i]))
	}
	place := clonePlace(t.place) // t.place may be read meanwhile
	return t.registry.AppendKept(ctx, &place, t.in.Split.Kept, said)
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
