package fakeupstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// object is a decoded JSON object of which the values are still raw. Keys are compared exactly, which a Go struct
// would not do; the last of several equal keys counts, as in Python.
type object map[string]json.RawMessage

// kind is the type of a JSON value by its first byte.
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

var kinds = map[byte]kind{'n': kindNull, 't': kindBool, 'f': kindBool, '"': kindString, '[': kindArray, '{': kindObject}

func kindOf(raw json.RawMessage) kind {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return kindAbsent
	}
	return cmp.Or(kinds[raw[0]], kindNumber)
}

// describe names the type of a value in the words of OpenAI's messages.
func describe(raw json.RawMessage) string {
	if isInteger(raw) {
		return "an integer"
	}
	return [...]string{"null", "null", "a boolean", "a decimal", "a string", "an array", "an object"}[kindOf(raw)]
}

func isInteger(raw json.RawMessage) bool {
	return kindOf(raw) == kindNumber && !bytes.ContainsAny(raw, ".eE")
}

// given reports whether the value is there and not null.
func given(raw json.RawMessage) bool { return kindOf(raw) > kindNull }

// as decodes a value; of another type it gives the zero value.
func as[T any](raw json.RawMessage) (v T) {
	_ = json.Unmarshal(raw, &v)
	return v
}

func asString(raw json.RawMessage) string { return as[string](raw) }

func asObject(raw json.RawMessage) object { return as[object](raw) }

func asArray(raw json.RawMessage) []json.RawMessage { return as[[]json.RawMessage](raw) }

// at is the value behind a path of keys, absent if any of them is.
func at(raw json.RawMessage, path ...string) json.RawMessage {
	for _, key := range path {
		raw = asObject(raw)[key]
	}
	return raw
}

// textAt is the text behind a path of keys, "" if there is none.
func textAt(raw json.RawMessage, path ...string) string { return asString(at(raw, path...)) }

// contentText returns the text of a message's content: the string itself, or its text parts, a line each.
func contentText(content json.RawMessage) string {
	if kindOf(content) != kindArray {
		return asString(content)
	}
	var parts []string
	for _, part := range asArray(content) {
		if text := textAt(part, "text"); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n")
}

// member is one member of a JSON object, in the order of the source.
type member struct {
	key   string
	value json.RawMessage
}

// membersOf returns the members of a JSON object in their order; nil when raw is not an object.
func membersOf(raw json.RawMessage) []member {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	members := []member{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil
		}
		m := member{key: key.(string)} // the decoder only gives strings for keys
		if err := dec.Decode(&m.value); err != nil {
			return nil
		}
		members = append(members, m)
	}
	return members
}

// edited is an object with its members changed; those for which change is false are left out.
func edited(raw json.RawMessage, change func(m *member) bool) json.RawMessage {
	var kept []member
	for _, m := range membersOf(raw) {
		if change(&m) {
			kept = append(kept, m)
		}
	}
	return joinObject(kept)
}

// emptied is an object with "" for one member.
func emptied(raw json.RawMessage, key string) json.RawMessage {
	return edited(raw, func(m *member) bool {
		if m.key == key {
			m.value = json.RawMessage(`""`)
		}
		return true
	})
}

// joinObject writes the members as a JSON object.
func joinObject(members []member) json.RawMessage {
	out := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, mustJSON(m.key)...), ':')
		out = append(out, m.value...)
	}
	return append(out, '}')
}

// build writes an object of keys and values, which take turns. Raw values are written as they are.
func build(pairs ...any) json.RawMessage {
	var members []member
	for pair := range slices.Chunk(pairs, 2) {
		key, value := pair[0].(string), pair[1]
		raw, _ := value.(json.RawMessage)
		if len(raw) == 0 {
			raw = mustJSON(value)
		}
		members = append(members, member{key, raw})
	}
	return joinObject(members)
}

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
