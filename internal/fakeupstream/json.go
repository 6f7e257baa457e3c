package fakeupstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// object is a JSON object whose values are not decoded yet. Keys are compared exactly, unlike those of a Go struct. The last of
// several equal keys counts, as in Python.
type object map[string]json.RawMessage

// kind is the type of a JSON value, taken from its first byte.
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

// given reports whether the value is present and not null.
func given(raw json.RawMessage) bool { return kindOf(raw) > kindNull }

// as decodes a value. It returns the zero value if the type does not match.
func as[T any](raw json.RawMessage) (v T) {
	_ = json.Unmarshal(raw, &v)
	return v
}

func asString(raw json.RawMessage) string { return as[string](raw) }

func asObject(raw json.RawMessage) object { return as[object](raw) }

func asArray(raw json.RawMessage) []json.RawMessage { return as[[]json.RawMessage](raw) }

// at returns the value at a path of keys, or nil.
func at(raw json.RawMessage, path ...string) json.RawMessage {
	for _, key := range path {
		raw = asObject(raw)[key]
	}
	return raw
}

// textAt returns the string at a path of keys, or "".
func textAt(raw json.RawMessage, path ...string) string { return asString(at(raw, path...)) }

// contentText returns the text of a message's content: the string itself, or the text parts joined by newlines.
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

// membersOf returns the members of a JSON object in order, or nil if raw is not an object.
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
		m := member{key: key.(string)} // the decoder returns only strings as keys
		if err := dec.Decode(&m.value); err != nil {
			return nil
		}
		members = append(members, m)
	}
	return members
}

// edited returns an object after change has seen each member. Members for which change returns false are dropped.
func edited(raw json.RawMessage, change func(m *member) bool) json.RawMessage {
	var kept []member
	for _, m := range membersOf(raw) {
		if change(&m) {
			kept = append(kept, m)
		}
	}
	return joinObject(kept)
}

// without returns an object without the members of these keys.
func without(raw json.RawMessage, keys ...string) json.RawMessage {
	return edited(raw, func(m *member) bool { return !slices.Contains(keys, m.key) })
}

// replaced returns an object with another value for one of its members.
func replaced(raw json.RawMessage, key string, value json.RawMessage) json.RawMessage {
	return edited(raw, func(m *member) bool {
		if m.key == key {
			m.value = value
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

// build encodes an object from alternating keys and values. Raw values are written verbatim.
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
