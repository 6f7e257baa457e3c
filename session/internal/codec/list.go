package codec

import (
	"bytes"
	"strconv"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Condensation encodes c without its Seq and its summary text.
func Condensation(c session.Condensation) []byte { return condensationFields(&c).encode() }

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

// SetList gives a thread what its list holds.
func SetList(t *session.Thread, list []byte) error {
	all, err := ParseList(list)
	t.SetListed(all)
	return err
}

// ParseList reads a list, or gives ErrCorrupt or ErrOld.
func ParseList(list []byte) ([]session.Condensation, error) {
	var all []session.Condensation
	for len(list) > 0 {
		c, rest, err := parseListed(list)
		if err != nil {
			return nil, err
		}
		all, list = append(all, c), rest
	}
	return all, nil
}

// parseListed reads the first of a list, and gives the rest.
func parseListed(list []byte) (c session.Condensation, rest []byte, err error) {
	seq, rest, seqErr := number(list)
	size, rest, err := number(rest)
	if seqErr != nil || err != nil || size > uint64(len(rest)) {
		return c, nil, ErrCorrupt
	}
	err = condensationFields(&c).parse(rest[:size])
	c.ID.Seq = seq
	return c, rest[size:], err
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
	return n, rest, err
}
