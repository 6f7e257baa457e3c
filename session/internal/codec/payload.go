package codec

import (
	"encoding/binary"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
)

// Content encodes payloads and summaries. Content that was written before keys were configured, or under a key that is no
// longer the active one, stays readable.
type Content struct {
	Keep bool       // store payloads of events
	Keys *seal.Keys // keys to encrypt with; nil to store content in clear

	coder *coder
}

// NewContent returns a Content, which may be copied.
func NewContent(keep bool, keys *seal.Keys) Content {
	return Content{Keep: keep, Keys: keys, coder: newCoder()}
}

// Text encodes the summary of c.
func (o Content) Text(c session.Condensation) []byte {
	return o.content([]byte(c.Summary), summaryPlace(c))
}

// ParseSummary decodes the summary of the condensation that has the given id in an encoded list. If the list has no such condensation, an
// encrypted summary cannot be decrypted.
func (o Content) ParseSummary(b, list []byte, id session.CondensationID) (string, error) {
	all, err := ParseList(list)
	if err != nil {
		return "", err
	}
	for _, c := range all {
		if c.ID == id {
			return o.ParseText(b, c)
		}
	}
	return o.ParseText(b, session.Condensation{})
}

// ParseText decodes the summary of c. All its errors wrap session.ErrUnreadable.
func (o Content) ParseText(b []byte, c session.Condensation) (string, error) {
	text, err := o.open(b, summaryPlace(c))
	if err != nil {
		return "", fmt.Errorf("%w: %w", session.ErrUnreadable, err)
	}
	return string(text), nil
}

// Prepared encodes a prepared condensation, which is not logged, with its summary.
func (o Content) Prepared(thread session.ThreadID, c session.Condensation) []byte {
	c.ID = session.CondensationID{Thread: thread}
	return o.content(append(Listed(nil, c), c.Summary...), preparedPlace(thread))
}

// ParsePrepared decodes a prepared condensation. All its errors wrap session.ErrUnreadable.
func (o Content) ParsePrepared(thread session.ThreadID, b []byte) (c session.Condensation, err error) {
	b, err = o.open(b, preparedPlace(thread))
	if err == nil {
		c, b, err = parseListed(b)
	}
	if err != nil {
		return session.Condensation{}, fmt.Errorf("%w: %w", session.ErrUnreadable, err)
	}
	c.Summary = string(b)
	return c, nil
}

// contentFields are the fields of a payload or a text, of which exactly one is set. Both hold the output of pack. Their
// numbers, 1 and 6, differ in more than one bit, so that a flipped bit does not turn one into the other.
func contentFields(clear, sealed *[]byte) message { return message{clear, nil, nil, nil, nil, sealed} }

// content encodes p. If keys are configured, it is sealed and bound to its place, unless it is empty.
func (o Content) content(p, place []byte) []byte {
	var sealed []byte
	packed := o.coder.pack(p)
	if len(p) > 0 && o.Keys.Seals() {
		packed, sealed = nil, o.Keys.Seal(nil, packed, place)
	}
	return contentFields(&packed, &sealed).encode()
}

// isSealed reports whether content was sealed.
func isSealed(b []byte) bool {
	var sealed []byte
	_ = contentFields(new([]byte), &sealed).decode(b)
	return len(sealed) > 0
}

// open decodes the output of content.
func (o Content) open(b, place []byte) ([]byte, error) {
	var packed, sealed []byte
	if err := contentFields(&packed, &sealed).decode(b); err != nil {
		return nil, err
	}
	if (len(packed) == 0) == (len(sealed) == 0) {
		return nil, ErrCorrupt
	}
	if len(sealed) > 0 {
		var err error
		packed, err = o.Keys.Open(sealed, place)
		if err != nil {
			return nil, err
		}
	}
	return o.coder.unpack(packed)
}

// preparedPlace returns the place of a sealed prepared condensation.
func preparedPlace(thread session.ThreadID) []byte {
	return appendText([]byte("dewpoint/prepared\n"), string(thread))
}

// summaryPlace returns the place of a sealed summary: the thread, the prefix that it summarises, and the condensation. It
// must never change. It leaves out the Seq, which a store assigns only when it writes.
func summaryPlace(c session.Condensation) []byte {
	b := appendText([]byte("dewpoint/summary\n"), string(c.ID.Thread))
	b = appendText(b, string(c.Base.Thread))
	b = binary.AppendUvarint(b, c.Base.Seq)
	b = binary.AppendVarint(b, int64(c.Prefix))
	b = appendHash(b, c.Hash)
	return appendTime(b, c.Time)
}

// eventPlace returns the place of a sealed payload: its thread and everything else in its record. It must never change.
func eventPlace(thread session.ThreadID, e session.Event) []byte {
	b := appendText([]byte("dewpoint/event\n"), string(thread))
	b = binary.AppendUvarint(b, uint64(e.Kind))
	b = binary.AppendVarint(b, int64(e.Pos))
	b = binary.AppendVarint(b, int64(e.After))
	b = appendHash(b, e.Digest)
	b = appendHash(b, e.Chain)
	b = binary.AppendVarint(b, int64(e.Tokens))
	return appendTime(b, e.Time)
}

// refPlace returns the place of a sealed reference (Event.Ref) of the events e and run, which share an entry. It must never change.
func refPlace(thread session.ThreadID, e session.Event, run []session.Event) []byte {
	b := append([]byte("dewpoint/held\n"), eventPlace(thread, e)...)
	for i := range run {
		b = appendHash(b, run[i].Chain)
		b = binary.AppendUvarint(b, uint64(run[i].Kind))
		b = binary.AppendVarint(b, int64(run[i].Tokens))
	}
	return b
}
