package engine

import (
	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Pass returns the form of a request that goes on without the engine: its body as it is. The dialect is nil if it is not known, and split if the
// body was not read. Otherwise sealed reasoning that upstream refuses can still be removed: the conversation may have been condensed before.
func (e *Engine) Pass(d dialect.Dialect, split *dialect.Request, body []byte) *Form {
	if split == nil {
		split = &dialect.Request{Body: body}
	}
	t := &Turn{
		engine: e, in: Input{Tenant: &Tenant{Off: true, Condenser: condense.Noop{}}, Dialect: d, Split: split},
		history: session.NewHistory(session.Hash{}, split.Messages), unrecognised: true,
	}
	t.place.New = true
	return &Form{turn: t, place: t.place, shown: projection{view: session.View{History: t.history}}}
}

// Recognised reports whether the request's conversation is known. If it is not, nothing can be condensed or logged.
func (t *Turn) Recognised() bool { return !t.unrecognised }
