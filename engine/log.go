package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// logging is the write of a turn's new messages.
type logging struct {
	done  chan struct{}      // closed when it is over
	place session.Resolution // where the log has them; empty until then, and if they could not be written
	cause session.Cause      // why a thread began, once it is over
	times int                // that one of the new calls was made with the same result; 0: too few to tell
	said  []session.Message  // where upstream keeps what came before: the request's own, and what the log lacks of that
}

// over reports whether it is.
func (l *logging) over() bool {
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

// Log returns a function that writes the request's new messages to the log, and reports whether there were any. It must be
// called once, in any goroutine: the turn goes on meanwhile, and holds its body for it. If it fails, the next request of
// the thread writes them.
func (t *Turn) Log() func(ctx context.Context) (wrote bool, err error) {
	t.noteSent()
	t.in.Body.Hold() // events alias it
	l := &logging{done: make(chan struct{})}
	t.logged = l
	place := alone(t.place)
	logged, asked := place.Logged, t.place
	repeats, often := t.repeats, t.in.Tenant.Repeats.After
	return func(ctx context.Context) (bool, error) {
		defer t.in.Body.Release()
		defer close(l.done)
		if t.remote() {
			t.hold()
			return false, nil
		}
		tally := t.counted().tally
		if repeats != nil {
			if r := repeats(); r.times >= often {
				l.times = r.times
			}
		}
		ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
		defer cancel()
		if err := t.registry.Append(ctx, &place, &tally); err != nil {
			return false, err
		}
		l.place = place
		d, _ := t.registry.Diverges(ctx, &asked) // if it fails, it says so in the cause
		l.cause = d.Cause
		return place.Logged > logged, nil
	}
}

// Logs reports whether the turn writes a log.
func (t *Turn) Logs() bool { return t.logged != nil }

// Cause says why a thread began with this request although some of it was known, empty if none did. It does not wait for the log.
func (t *Turn) Cause() session.Cause {
	switch {
	case !t.place.New:
		return ""
	case t.logged.over():
		return t.logged.cause
	}
	return session.CauseUnread
}

// Repeated is how many times the model made one of its new calls with the same result, 0 if too few to tell. It does not wait for the log.
func (t *Turn) Repeated() int {
	if t.logged.over() {
		return t.logged.times
	}
	return 0
}

// awaitLog waits until the log of this request is written: what follows builds on it.
func (t *Turn) awaitLog() {
	if t.logged != nil {
		<-t.logged.done
	}
}

// Answered returns a function that marks an answer in the log, once the turn is written there, so that the client is
// recognised by it. It may be called in any goroutine.
//
// The echo is the answer as the client will send it back, where that is not what upstream has to be shown of it; else nil.
func (t *Turn) Answered(answer dialect.Answer, echo []byte) func(ctx context.Context) error {
	ids, arguments := []string(nil), slices.Clone(answer.Compactions)
	for _, c := range answer.Calls {
		ids = append(ids, c.ID)
		arguments = append(arguments, argumentTexts(c.Arguments)...)
	}
	kept := t.keptTraces(answer)
	return func(ctx context.Context) error {
		t.awaitLog()
		if t.logged == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
		defer cancel()
		place, err := &t.logged.place, error(nil)
		switch seed := t.history.Chain[0]; {
		case t.remote():
			err = t.logKept(ctx, answer, slices.Concat(kept, session.CallTraces(seed, ids), session.AnswerTraces(seed, answer.Text, arguments)))
		case place.Thread.ID != "":
			if answer.ID != "" && t.in.Split.Stores && len(answer.Said) <= longestAnswer {
				t.engine.memory.answers.Add(session.KeptTrace(seed, answer.ID), answer.Said)
			}
			err = errors.Join(t.setAside(ctx, echo), t.registry.Answered(ctx, place, answer.Text, ids, arguments, kept...))
		}
		if errors.Is(err, session.ErrNotFound) { // the session was deleted meanwhile
			return nil
		}
		return err
	}
}

// argumentTexts gives the texts in a tool call's arguments, at any depth: among them is a sub-agent's task.
func argumentTexts(arguments string) []string {
	if len(arguments) > argumentsRead {
		return nil
	}
	var v any
	if json.Unmarshal([]byte(arguments), &v) != nil {
		return nil
	}
	return collect(v, nil)
}

// argumentsRead bounds the arguments that are looked into, in bytes.
const argumentsRead = 64 << 10

func collect(v any, out []string) []string {
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, e := range v {
			out = collect(e, out)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = collect(v[key], out)
		}
	}
	return out
}

// remote reports whether upstream keeps what came before the request's messages: there is nothing that could be condensed.
func (t *Turn) remote() bool { return t.in.Split.Kept != (session.Kept{}) }

// passive is the tenant as for requests that are never changed.
func (t *Tenant) passive() *Tenant {
	quiet := *t
	quiet.Observe, quiet.Condenser = true, condense.Noop{}
	return &quiet
}

// Of answers, which upstream keeps and the log does not have, since most clients send them: how many are remembered, and how long they may
// be, in bytes.
const (
	answersKept   = 1024
	longestAnswer = 16 << 10
)

// hold copies what the request says, while its body is there. It is logged once it is answered: what is not answered upstream does not keep
// either.
func (t *Turn) hold() {
	if last, known := t.engine.memory.answers.Get(session.KeptTrace(t.history.Chain[0], t.in.Split.Kept.Answer)); known {
		t.logged.said = t.read(last)
	}
	for i := range t.in.Split.Messages {
		if m := t.in.Split.Messages[i]; m.Kind != session.System {
			m.Raw = bytes.Clone(m.Raw)
			t.logged.said = append(t.logged.said, m)
		}
	}
	t.counted()
}

// read splits an answer, of which there is nothing else to log.
func (t *Turn) read(said []byte) []session.Message {
	if len(said) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(splitAlone(t.in.Dialect, said)), func(m session.Message) bool { return m.Kind == session.System })
}

// logKept logs what was said and answered.
func (t *Turn) logKept(ctx context.Context, a dialect.Answer, traces []session.Hash) error {
	said := session.Said{Messages: append(t.logged.said, t.read(a.Said)...), Traces: traces}
	for i := range said.Messages {
		said.Tokens = append(said.Tokens, t.tokens(&said.Messages[i]))
	}
	place := alone(t.place) // the request's own is read meanwhile
	return t.registry.AppendKept(ctx, &place, t.in.Split.Kept, said)
}

// keptTraces are those by which a later request may go on from an answer.
func (t *Turn) keptTraces(a dialect.Answer) (traces []session.Hash) {
	seed := t.history.Chain[0]
	for _, id := range [...]string{a.ID, t.in.Split.Kept.Conversation} {
		if id != "" && t.in.Split.Stores {
			traces = append(traces, session.KeptTrace(seed, id))
		}
	}
	return traces
}
