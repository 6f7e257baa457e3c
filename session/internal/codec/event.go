package codec

import (
	"errors"
	"fmt"
	"math"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/pb"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

// Event encodes an event of a thread without its Seq, which is its place in the log.
func (o Content) Event(thread session.ThreadID, e session.Event) []byte {
	m := &pb.Event{
		Kind:   uint32(e.Kind),
		Pos:    int64(e.Pos),
		After:  int64(e.After),
		Digest: hashBytes(e.Digest),
		Chain:  hashBytes(e.Chain),
		Tokens: int64(e.Tokens),
		Time:   nanoseconds(e.Time),
	}
	if o.Keep && len(e.Payload) > 0 {
		m.Payload = o.content(e.Payload, func() []byte { return eventPlace(thread, e) })
	}
	return marshal(m)
}

// ParseEvent reads what Event wrote, or gives ErrCorrupt or ErrOld, or session.ErrUnreadable if what was encrypted was
// changed or moved. An event whose key is gone is as one whose payload was not kept. The event owns its payload.
func (o Content) ParseEvent(thread session.ThreadID, b []byte, seq uint64) (session.Event, error) {
	m, e, err := parseEvent(b, seq)
	if err != nil || m.Payload == nil {
		return e, err
	}
	e.Payload, err = o.open(m.Payload, func() []byte { return eventPlace(thread, e) })
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

// ChainOf reads the chain hash of what Event wrote, zero if it has none, without its payload; or ErrCorrupt or ErrOld.
func ChainOf(b []byte) (session.Hash, error) {
	_, e, err := parseEvent(b, 0)
	return e.Chain, err
}

// parseEvent gives the event without its payload.
func parseEvent(b []byte, seq uint64) (*pb.Event, session.Event, error) {
	var m pb.Event
	if err := unmarshal(b, &m); err != nil {
		return nil, session.Event{}, err
	}
	digest, digestErr := parseHash(m.Digest)
	chain, chainErr := parseHash(m.Chain)
	if err := errors.Join(digestErr, chainErr); err != nil || m.Kind == 0 || m.Kind > math.MaxUint8 {
		return nil, session.Event{}, ErrCorrupt
	}
	return &m, session.Event{
		Seq:    seq,
		Kind:   session.Kind(m.Kind),
		Pos:    int(m.Pos),
		After:  int(m.After),
		Digest: digest,
		Chain:  chain,
		Tokens: int(m.Tokens),
		Time:   instant(m.Time),
	}, nil
}

// Condensed is the log entry of c: the text and the ranges are in the thread's list of condensations, under the entry's
// Seq.
func Condensed(c session.Condensation) session.Event {
	if c.Aside() {
		return session.Event{Kind: session.HiddenCalls, Time: c.Time}
	}
	return session.Event{Kind: session.Condensed, Tokens: c.SummaryTokens, Time: c.Time}
}
