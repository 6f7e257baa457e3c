// Package codec encodes the records of both stores. Records are protobuf messages, so that a new field does not need a new
// format. Places, of which every request reads many, have a smaller encoding: a version byte, then the fields in order,
// integers as varints and strings preceded by their length.
package codec

import (
	"errors"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// ErrCorrupt means that the bytes are not a record of this format.
var ErrCorrupt = errors.New("corrupt record")

// message describes a protobuf message by pointers to the values of its fields, in the order of the field numbers, which
// start at 1. An entry is nil if no field has its number. Zero values are not written. In the terms of a .proto file, int, int64 and
// time.Duration are int64, a kind is uint32, hashes and encoded values are bytes, and times are sfixed64: nanoseconds since
// 1970, decoded as UTC.
//
// Field numbers are never changed or reused. Unknown fields are skipped.
type message []any

// repeated is a field with any number of values.
type repeated interface {
	values() [][]byte
	add(value []byte) error
}

// texts is a repeated string.
type texts[T ~string] struct{ all *[]T }

func (t texts[T]) values() (out [][]byte) {
	for _, s := range *t.all {
		out = append(out, []byte(s))
	}
	return out
}

func (t texts[T]) add(value []byte) error {
	*t.all = append(*t.all, T(value))
	return nil
}

// messages is a repeated message.
type messages[T any] struct {
	all    *[]T
	fields func(*T) message
}

func (m messages[T]) values() (out [][]byte) {
	for i := range *m.all {
		out = append(out, m.fields(&(*m.all)[i]).encode())
	}
	return out
}

func (m messages[T]) add(value []byte) error {
	var one T
	err := m.fields(&one).decode(value)
	*m.all = append(*m.all, one)
	return err
}

func (m message) encode() []byte {
	var b []byte
	number := func(n protowire.Number, value uint64) {
		if value != 0 {
			b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), value)
		}
	}
	text := func(n protowire.Number, value []byte) {
		b = protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), value)
	}
	for i, field := range m {
		n := protowire.Number(i + 1) // few
		switch v := field.(type) {
		case *int:
			number(n, uint64(*v)) //nolint:gosec // the same 64 bits
		case *int64:
			number(n, uint64(*v)) //nolint:gosec // the same 64 bits
		case *uint64:
			number(n, *v)
		case *session.Kind:
			number(n, uint64(*v))
		case *bool:
			number(n, protowire.EncodeBool(*v))
		case *time.Time:
			if !v.IsZero() {
				b = protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), uint64(v.UnixNano())) // the same 64 bits
			}
		case *string:
			if *v != "" {
				b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), *v)
			}
		case *session.Hash:
			if !v.IsZero() {
				text(n, v[:])
			}
		case *[]byte:
			if len(*v) > 0 {
				text(n, *v)
			}
		case message:
			if encoded := v.encode(); len(encoded) > 0 {
				text(n, encoded)
			}
		case repeated:
			for _, value := range v.values() {
				text(n, value)
			}
		}
	}
	return b
}

// decode decodes a record, or returns ErrCorrupt.
func (m message) decode(b []byte) error {
	for len(b) > 0 {
		n, wire, size := protowire.ConsumeTag(b)
		if size < 0 {
			return ErrCorrupt
		}
		b = b[size:]
		if size = protowire.ConsumeFieldValue(n, wire, b); size < 0 {
			return ErrCorrupt
		}
		if int(n) <= len(m) {
			if err := set(m[n-1], wire, b[:size]); err != nil {
				return err
			}
		}
		b = b[size:]
	}
	return nil
}

// set sets a field to an encoded value, which must be complete. Byte slices alias it.
func set(field any, wire protowire.Type, value []byte) error {
	switch wire {
	case protowire.VarintType:
		setNumber(field, value)
	case protowire.Fixed64Type:
		n, _ := protowire.ConsumeFixed64(value)
		if v, ok := field.(*time.Time); ok && n != 0 {
			*v = time.Unix(0, int64(n)).UTC() //nolint:gosec // the same 64 bits
		}
	case protowire.BytesType:
		text, _ := protowire.ConsumeBytes(value)
		return setText(field, text)
	}
	return nil
}

func setNumber(field any, value []byte) {
	n, _ := protowire.ConsumeVarint(value)
	switch v := field.(type) {
	case *int:
		*v = int(n) //nolint:gosec // the same 64 bits
	case *int64:
		*v = int64(n) //nolint:gosec // the same 64 bits
	case *uint64:
		*v = n
	case *session.Kind:
		if n <= math.MaxUint8 { // otherwise it stays 0, which is no kind
			*v = session.Kind(n)
		}
	case *bool:
		*v = protowire.DecodeBool(n)
	}
}

func setText(field any, text []byte) error {
	switch v := field.(type) {
	case *string:
		*v = string(text)
	case *[]byte:
		*v = text
	case *session.Hash:
		if len(text) != 0 && len(text) != len(v) {
			return ErrCorrupt
		}
		copy(v[:], text)
	case message:
		return v.decode(text)
	case repeated:
		return v.add(text)
	}
	return nil
}
