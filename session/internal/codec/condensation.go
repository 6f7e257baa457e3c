package codec

import (
	"bytes"
	"strconv"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Condensation encodes c without its Seq and its summary text.
func Condensation(c session.Condensation) []byte {
	w := writer{make([]byte, 0, 192)}
	w.version()
	w.string(string(c.ID.Thread))
	w.string(string(c.Base.Thread))
	w.uint(c.Base.Seq)
	w.int(c.Prefix)
	w.hash(c.Hash)
	w.uint(uint64(len(c.Forgotten)))
	for _, r := range c.Forgotten {
		w.int(r.From)
		w.int(r.To)
	}
	w.uint(uint64(len(c.Trims)))
	for _, t := range c.Trims {
		w.int(t.Pos)
		w.int(t.Head)
		w.int(t.Tail)
	}
	w.int(c.ForgottenTokens)
	w.int(c.SummaryTokens)
	w.int(c.Offset)
	w.string(string(c.Reason))
	w.string(c.Condenser)
	w.string(c.Model)
	for _, n := range [...]int{c.Before.Events, c.Before.Tokens, c.After.Events, c.After.Tokens, c.Usage.Input, c.Usage.Cached, c.Usage.Output} {
		w.int(n)
	}
	w.time(c.Time)
	w.string(c.Request)
	w.int(c.Stripped)
	return w.b
}

func parseCondensation(b []byte, seq uint64) (session.Condensation, error) {
	r := reader{b: b}
	r.version()
	c := session.Condensation{
		ID:     session.CondensationID{Thread: session.ThreadID(r.string()), Seq: seq},
		Base:   session.CondensationID{Thread: session.ThreadID(r.string()), Seq: r.uint()},
		Prefix: r.int(),
		Hash:   r.hash(),
	}
	for range r.count() {
		c.Forgotten = append(c.Forgotten, session.Range{From: r.int(), To: r.int()})
	}
	for range r.count() {
		c.Trims = append(c.Trims, session.Trim{Pos: r.int(), Head: r.int(), Tail: r.int()})
	}
	c.ForgottenTokens, c.SummaryTokens, c.Offset = r.int(), r.int(), r.int()
	c.Reason, c.Condenser, c.Model = session.Reason(r.string()), r.string(), r.string()
	for _, n := range [...]*int{&c.Before.Events, &c.Before.Tokens, &c.After.Events, &c.After.Tokens, &c.Usage.Input, &c.Usage.Cached, &c.Usage.Output} {
		*n = r.int()
	}
	c.Time, c.Request, c.Stripped = r.time(), r.string(), r.int()
	return c, r.end()
}

// Listed appends c to an encoded list of condensations, as "SEQ:LENGTH:BYTES": a form that a Redis script, which alone
// knows the next Seq, can append to as well.
func Listed(list []byte, c session.Condensation) []byte {
	b := Condensation(c)
	list = append(strconv.AppendUint(list, c.ID.Seq, 10), ':')
	list = append(strconv.AppendInt(list, int64(len(b)), 10), ':')
	return append(list, b...)
}

// List encodes a whole list.
func List(condensations []session.Condensation) []byte {
	var list []byte
	for _, c := range condensations {
		list = Listed(list, c)
	}
	return list
}

// ParseList reads a list, or gives ErrCorrupt.
func ParseList(list []byte) ([]session.Condensation, error) {
	var all []session.Condensation
	for len(list) > 0 {
		seq, rest, err := number(list)
		if err != nil {
			return nil, err
		}
		size, rest, err := number(rest)
		if err != nil || size > uint64(len(rest)) {
			return nil, ErrCorrupt
		}
		c, err := parseCondensation(rest[:size], seq)
		if err != nil {
			return nil, err
		}
		all, list = append(all, c), rest[size:]
	}
	return all, nil
}

// Find gives the condensation of that id; without it, one that nothing is sealed for.
func Find(list []session.Condensation, id session.CondensationID) session.Condensation {
	for _, c := range list {
		if c.ID == id {
			return c
		}
	}
	return session.Condensation{}
}

// number reads digits up to a colon.
func number(b []byte) (uint64, []byte, error) {
	digits, rest, ok := bytes.Cut(b, []byte{':'})
	if !ok || len(digits) > 20 {
		return 0, nil, ErrCorrupt
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil {
		return 0, nil, ErrCorrupt
	}
	return n, rest, nil
}
