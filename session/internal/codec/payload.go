package codec

import (
	"fmt"

	"github.com/klauspost/compress/s2"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/pb"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

// The forms of a payload, its first byte. S2 was chosen over zstd for its speed and because it needs no encoder state:
// over 3442 chat messages (1.96 kB on average) it gave 1.85:1 at 720 MB/s, zstd at its fastest level 2.54:1 at 186 MB/s.
const (
	raw byte = iota
	packed
)

const (
	leastPacked = 96       // bytes; below, the frame eats what compression gains
	mostRead    = 64 << 20 // bytes; a corrupt length must not allocate more
)

// Content says how payloads and summaries are kept. What was written before keys were configured, or under a key that is
// not the active one any more, stays readable.
type Content struct {
	Keep bool       // payloads; otherwise events are kept without them
	Keys *seal.Keys // nil: nothing is encrypted
}

// Text encodes the summary of c.
func (o Content) Text(c session.Condensation) []byte {
	return marshal(o.content([]byte(c.Summary), func() []byte { return summaryPlace(c) }))
}

// ParseText reads what Text wrote for the condensation c. All its errors wrap session.ErrUnreadable.
func (o Content) ParseText(b []byte, c session.Condensation) (string, error) {
	var m pb.Content
	err := unmarshal(b, &m)
	var text []byte
	if err == nil {
		text, err = o.open(&m, func() []byte { return summaryPlace(c) })
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", session.ErrUnreadable, err)
	}
	return string(text), nil
}

// Prepared encodes a condensation that is not logged, with its summary.
func (o Content) Prepared(thread session.ThreadID, c session.Condensation) []byte {
	c.ID = session.CondensationID{Thread: thread}
	b := append(Listed(nil, c), c.Summary...)
	return marshal(o.content(b, func() []byte { return preparedPlace(thread) }))
}

// ParsePrepared reads what Prepared wrote. All its errors wrap session.ErrUnreadable.
func (o Content) ParsePrepared(thread session.ThreadID, b []byte) (c session.Condensation, err error) {
	var m pb.Content
	if err = unmarshal(b, &m); err == nil {
		b, err = o.open(&m, func() []byte { return preparedPlace(thread) })
	}
	if err == nil {
		c, b, err = parseListed(b)
	}
	if err != nil {
		return session.Condensation{}, fmt.Errorf("%w: %w", session.ErrUnreadable, err)
	}
	c.Summary = string(b)
	return c, nil
}

// preparedPlace is what a sealed condensation that is not logged is bound to.
func preparedPlace(thread session.ThreadID) []byte {
	w := writer{[]byte("dewpoint/prepared\n")}
	w.string(string(thread))
	return w.b
}

// content is p as it is kept. What is encrypted is bound to its place; nothing is nothing to hide.
func (o Content) content(p []byte, place func() []byte) *pb.Content {
	if len(p) == 0 || !o.Keys.Seals() {
		return &pb.Content{Clear: pack(nil, p)}
	}
	return &pb.Content{Sealed: o.Keys.Seal(nil, pack(nil, p), place())}
}

// open reads what content made.
func (o Content) open(c *pb.Content, place func() []byte) ([]byte, error) {
	if (len(c.Clear) == 0) == (len(c.Sealed) == 0) {
		return nil, ErrCorrupt
	}
	if len(c.Sealed) == 0 {
		return unpack(c.Clear)
	}
	inside, err := o.Keys.Open(c.Sealed, place())
	if err != nil {
		return nil, err
	}
	return unpack(inside)
}

// summaryPlace is what a sealed summary is bound to: the thread, the prefix that it stands for, and the condensation. It
// must never change; the Seq is no part of it because a store gives it only when it writes.
func summaryPlace(c session.Condensation) []byte {
	w := writer{[]byte("dewpoint/summary\n")}
	w.string(string(c.ID.Thread))
	w.string(string(c.Base.Thread))
	w.uint(c.Base.Seq)
	w.int(c.Prefix)
	w.hash(c.Hash)
	w.time(c.Time)
	return w.b
}

// eventPlace is what a sealed payload is bound to: its thread, and all else that its record says. It must never change.
func eventPlace(thread session.ThreadID, e session.Event) []byte {
	w := writer{[]byte("dewpoint/event\n")}
	w.string(string(thread))
	w.uint(uint64(e.Kind))
	w.int(e.Pos)
	w.int(e.After)
	w.hash(e.Digest)
	w.hash(e.Chain)
	w.int(e.Tokens)
	w.time(e.Time)
	return w.b
}

// pack appends p in its smaller form.
func pack(b, p []byte) []byte {
	if len(p) >= leastPacked && len(p) <= mostRead {
		if small := s2.Encode(nil, p); len(small) < len(p) {
			return append(append(b, packed), small...)
		}
	}
	return append(append(b, raw), p...)
}

// unpack gives a copy, nil if the payload is empty.
func unpack(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, ErrCorrupt
	}
	form, b := b[0], b[1:]
	switch {
	case form == raw && len(b) == 0:
		return nil, nil
	case form == raw:
		return append([]byte(nil), b...), nil
	case form != packed:
		return nil, ErrCorrupt
	}
	if n, err := s2.DecodedLen(b); err != nil || n > mostRead {
		return nil, ErrCorrupt
	}
	p, err := s2.Decode(nil, b)
	if err != nil {
		return nil, ErrCorrupt
	}
	return p, nil
}
