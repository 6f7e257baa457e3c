package fakeupstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// value is a JSON value, decoded down to its leaves. The zero value is an absent one.
type value struct {
	kind     kind
	raw      json.RawMessage // as it is written
	elements []value         // of an array
	members  []value         // of an object, in the order of the source
	key      string          // of a member
	text     string          // of a string
}

// kind is the type of a JSON value.
type kind byte

const (
	kindAbsent kind = iota
	kindNull
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// kinds tells all kinds but numbers by their first byte.
var kinds = [256]kind{'n': kindNull, 't': kindBool, 'f': kindBool, '"': kindString, '[': kindArray, '{': kindObject}

// parse decodes a JSON text. One that is not valid gives an absent value.
func parse(text json.RawMessage) value {
	if !json.Valid(text) {
		return value{}
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return next(dec, text)
}

// next decodes the next value of a valid JSON text.
func next(dec *json.Decoder, text json.RawMessage) (v value) {
	start := dec.InputOffset()
	token, _ := dec.Token()
	switch token := token.(type) {
	case string:
		v.text = token
	case json.Delim:
		for dec.More() {
			inner := next(dec, text)
			if token == '[' {
				v.elements = append(v.elements, inner)
				continue
			}
			key := inner.text
			inner = next(dec, text)
			inner.key = key
			v.members = append(v.members, inner)
		}
		_, _ = dec.Token() // the end
	}
	v.raw = slices.Clip(bytes.TrimLeft(text[start:dec.InputOffset()], " \t\r\n,:"))
	v.kind = cmp.Or(kinds[v.raw[0]], kindNumber)
	return v
}

// describe names the type of a value in the words of OpenAI's messages.
func describe(v value) string {
	if v.isInteger() {
		return "an integer"
	}
	return [...]string{"null", "null", "a boolean", "a decimal", "a string", "an array", "an object"}[v.kind]
}

func (v value) isInteger() bool { return v.kind == kindNumber && !bytes.ContainsAny(v.raw, ".eE") }

func (v value) isTrue() bool { return string(v.raw) == "true" }

// given reports whether the value is present and not null.
func (v value) given() bool { return v.kind > kindNull }

// at returns the value at a path of keys, or an absent one. Keys are compared exactly, unlike those of a Go struct. The last of
// several equal keys counts, as in Python.
func (v value) at(path ...string) value {
	for _, key := range path {
		members := v.members
		v = value{}
		for i := range members {
			if members[i].key == key {
				v = members[i]
			}
		}
	}
	return v
}

// first returns the first element of an array, or an absent value.
func (v value) first() value {
	if len(v.elements) == 0 {
		return value{}
	}
	return v.elements[0]
}

// raws returns the values as they are written.
func raws(all []value) []json.RawMessage {
	return each(all, func(v value) json.RawMessage { return v.raw })
}

// each returns what encode makes of each value.
func each(all []value, encode func(value) json.RawMessage) []json.RawMessage {
	encoded := make([]json.RawMessage, len(all))
	for i := range all {
		encoded[i] = encode(all[i])
	}
	return encoded
}

// contentText returns the text of a message's content: the string itself, or the text parts joined by newlines.
func contentText(message value) string {
	content := message.at("content")
	var parts []string
	for _, part := range content.elements {
		if text := part.at("text").text; text != "" {
			parts = append(parts, text)
		}
	}
	return content.text + strings.Join(parts, "\n") // one of the two is empty
}

// edited returns an object after change has seen each member. Members for which change returns false are dropped.
func edited(object value, change func(m *value) bool) json.RawMessage {
	var kept []value
	for _, m := range object.members {
		if change(&m) {
			kept = append(kept, m)
		}
	}
	return joinObject(kept)
}

// changed returns an object with other values for some of its members, which are dropped if the value is "".
func changed(object value, values map[string]string) json.RawMessage {
	return edited(object, func(m *value) bool {
		raw, changes := values[m.key]
		if changes {
			m.raw = json.RawMessage(raw)
		}
		return !changes || raw != ""
	})
}

// withMember returns an object with one more member.
func withMember(object value, key string, raw json.RawMessage) json.RawMessage {
	return joinObject(append(slices.Clip(object.members), value{key: key, raw: raw}))
}

// joinObject writes the members as a JSON object.
func joinObject(members []value) json.RawMessage {
	out := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, mustJSON(m.key)...), ':')
		out = append(out, m.raw...)
	}
	return append(out, '}')
}

// build encodes an object from alternating keys and values. Decoded and raw values are written verbatim, absent ones as null.
func build(pairs ...any) json.RawMessage {
	var members []value
	for pair := range slices.Chunk(pairs, 2) {
		m := value{key: pair[0].(string)}
		switch given := pair[1].(type) {
		case value:
			m.raw = given.raw
		case json.RawMessage:
			m.raw = given
		default:
			m.raw = mustJSON(given)
		}
		if m.raw == nil {
			m.raw = json.RawMessage("null")
		}
		members = append(members, m)
	}
	return joinObject(members)
}

// object is build for a value that will be read.
func object(pairs ...any) value { return parse(build(pairs...)) }

// mustJSON encodes a value that cannot fail to encode, without escaping HTML.
func mustJSON(v any) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("fakeupstream: encode: " + err.Error())
	}
	return bytes.TrimRight(out.Bytes(), "\n")
}
