package codec

import (
	"errors"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

// Event encodes an event of a thread without its Seq, which is its place in the log.
func (o Content) Event(thread session.ThreadID, e session.Event) []byte {
	if !o.Keep {
		e.Payload = nil
	}
	w := writer{make([]byte, 0, 160+len(e.Payload))}
	form := version
	if len(e.Payload) > 0 && o.Keys.Seals() {
		form = sealed
	}
	w.b = append(w.b, form, byte(e.Kind))
	w.int(e.Pos + e.After) // only one of them is ever set
	w.hash(e.Digest)
	w.hash(e.Chain)
	w.int(e.Tokens)
	w.time(e.Time)
	if form == sealed {
		return o.Keys.Seal(w.b, pack(nil, e.Payload), eventPlace(thread, w.b))
	}
	return pack(w.b, e.Payload)
}

// ParseEvent reads what Event wrote, or gives ErrCorrupt, or session.ErrUnreadable if what was encrypted was changed or
// moved. An event whose key is gone is as one whose payload was not kept. The event owns its payload.
func (o Content) ParseEvent(thread session.ThreadID, b []byte, seq uint64) (session.Event, error) {
	r := reader{b: b}
	form := r.form()
	e := session.Event{
		Seq:    seq,
		Kind:   session.Kind(r.byte()),
		Pos:    r.int(),
		Digest: r.hash(),
		Chain:  r.hash(),
		Tokens: r.int(),
		Time:   r.time(),
	}
	if r.err != nil {
		return session.Event{}, r.err
	}
	if e.Kind == session.System {
		e.Pos, e.After = 0, e.Pos
	}
	var err error
	e.Payload, err = o.unpack(form, r.b, func() []byte { return eventPlace(thread, b[:len(b)-len(r.b)]) })
	var unknown *seal.KeyError
	switch {
	case errors.As(err, &unknown):
		return e, nil
	case errors.Is(err, seal.ErrTampered):
		return session.Event{}, fmt.Errorf("%w: %w", session.ErrUnreadable, err)
	case err != nil:
		return session.Event{}, err
	}
	return e, nil
}

// ChainOf reads the chain hash of what Event wrote, zero if it has none, without its payload; or ErrCorrupt.
func ChainOf(b []byte) (session.Hash, error) {
	r := reader{b: b}
	r.form()
	r.byte()
	r.int()
	r.hash()
	chain := r.hash()
	return chain, r.err
}

// Condensed is the log entry of c: the text and the ranges are in the thread's list of condensations, under the entry's
// Seq.
func Condensed(c session.Condensation) session.Event {
	return session.Event{Kind: session.Condensed, Tokens: c.SummaryTokens, Time: c.Time}
}
