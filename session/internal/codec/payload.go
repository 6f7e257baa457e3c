package codec

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/s2"

	"github.com/dewpoint-proxy/dewpoint/session"
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
	return o.content([]byte(c.Summary), func() []byte { return summaryPlace(c) })
}

// ParseText reads what Text wrote for the condensation c. All its errors wrap session.ErrUnreadable.
func (o Content) ParseText(b []byte, c session.Condensation) (string, error) {
	text, err := o.open(b, func() []byte { return summaryPlace(c) })
	if err != nil {
		return "", fmt.Errorf("%w: %w", session.ErrUnreadable, err)
	}
	return string(text), nil
}

// Prepared encodes a condensation that is not logged, with its summary.
func (o Content) Prepared(thread session.ThreadID, c session.Condensation) []byte {
	c.ID = session.CondensationID{Thread: thread}
	return o.content(append(Listed(nil, c), c.Summary...), func() []byte { return preparedPlace(thread) })
}

// ParsePrepared reads what Prepared wrote. All its errors wrap session.ErrUnreadable.
func (o Content) ParsePrepared(thread session.ThreadID, b []byte) (c session.Condensation, err error) {
	b, err = o.open(b, func() []byte { return preparedPlace(thread) })
	if err == nil {
		c, b, err = parseListed(b)
	}
	if err != nil {
		return session.Condensation{}, fmt.Errorf("%w: %w", session.ErrUnreadable, err)
	}
	c.Summary = string(b)
	return c, nil
}

// contentFields are those of a payload or a text: at most one of them is set. Both hold the same form, which says in its first byte
// whether it is compressed. Their numbers, 1 and 6, differ in two bits.
func contentFields(clear, sealed *[]byte) message { return message{clear, nil, nil, nil, nil, sealed} }

// content is p as it is kept. What is encrypted is bound to its place; nothing is nothing to hide.
func (o Content) content(p []byte, place func() []byte) []byte {
	packed, sealed := pack(p), []byte(nil)
	if len(p) > 0 && o.Keys.Seals() {
		packed, sealed = nil, o.Keys.Seal(nil, packed, place())
	}
	return contentFields(&packed, &sealed).encode()
}

// open reads what content made.
func (o Content) open(b []byte, place func() []byte) ([]byte, error) {
	var packed, sealed []byte
	if err := contentFields(&packed, &sealed).parse(b); err != nil {
		return nil, err
	}
	if (len(packed) == 0) == (len(sealed) == 0) {
		return nil, ErrCorrupt
	}
	if len(sealed) > 0 {
		var err error
		if packed, err = o.Keys.Open(sealed, place()); err != nil {
			return nil, err
		}
	}
	return unpack(packed)
}

// preparedPlace is what a sealed condensation that is not logged is bound to.
func preparedPlace(thread session.ThreadID) []byte {
	return appendText([]byte("dewpoint/prepared\n"), string(thread))
}

// summaryPlace is what a sealed summary is bound to: the thread, the prefix that it stands for, and the condensation. It
// must never change; the Seq is no part of it because a store gives it only when it writes.
func summaryPlace(c session.Condensation) []byte {
	b := appendText([]byte("dewpoint/summary\n"), string(c.ID.Thread))
	b = binary.AppendUvarint(appendText(b, string(c.Base.Thread)), c.Base.Seq)
	b = appendHash(binary.AppendVarint(b, int64(c.Prefix)), c.Hash)
	return appendTime(b, c.Time)
}

// eventPlace is what a sealed payload is bound to: its thread, and all else that its record says. It must never change.
func eventPlace(thread session.ThreadID, e session.Event) []byte {
	b := binary.AppendUvarint(appendText([]byte("dewpoint/event\n"), string(thread)), uint64(e.Kind))
	b = binary.AppendVarint(binary.AppendVarint(b, int64(e.Pos)), int64(e.After))
	b = appendHash(appendHash(b, e.Digest), e.Chain)
	return appendTime(binary.AppendVarint(b, int64(e.Tokens)), e.Time)
}

// pack gives p in its smaller form, behind a byte that tells which.
func pack(p []byte) []byte {
	if len(p) >= leastPacked && len(p) <= mostRead {
		if small := s2.Encode(nil, p); len(small) < len(p) {
			return append([]byte{packed}, small...)
		}
	}
	return append([]byte{raw}, p...)
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
