package engine

import (
	"bytes"
	"context"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

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
