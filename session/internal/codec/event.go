package codec

import "github.com/dewpoint-proxy/dewpoint/session"

// Event encodes e without its Seq, which is its place in the log. Without content the payload is left out.
func Event(e session.Event, content bool) []byte {
	if !content {
		e.Payload = nil
	}
	w := writer{make([]byte, 0, 96+len(e.Payload))}
	w.version()
	w.b = append(w.b, byte(e.Kind))
	w.int(e.Pos + e.After) // only one of them is ever set
	w.hash(e.Digest)
	w.hash(e.Chain)
	w.int(e.Tokens)
	w.time(e.Time)
	w.b = pack(w.b, e.Payload)
	return w.b
}

// ParseEvent reads what Event wrote, or ErrCorrupt. The event owns its payload.
func ParseEvent(b []byte, seq uint64) (session.Event, error) {
	r := reader{b: b}
	r.version()
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
	e.Payload, err = unpack(r.b)
	if err != nil {
		return session.Event{}, err
	}
	return e, nil
}

// ChainOf reads the chain hash of what Event wrote, zero if it has none, without its payload; or ErrCorrupt.
func ChainOf(b []byte) (session.Hash, error) {
	r := reader{b: b}
	r.version()
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
