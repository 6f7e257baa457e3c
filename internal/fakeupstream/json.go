package fakeupstream

import (
	"bytes"
	"encoding/json"
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

func kindOf(raw json.RawMessage) kind {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return kindAbsent
	}
	switch raw[0] {
	case 'n':
		return kindNull
	case 't', 'f':
		return kindBool
	case '"':
		return kindString
	case '[':
		return kindArray
	case '{':
		return kindObject
	default:
		return kindNumber
	}
}

// describe names the type of a value in the words of OpenAI's messages.
func describe(raw json.RawMessage) string {
	switch kindOf(raw) {
	case kindNull, kindAbsent:
		return "null"
	case kindBool:
		return "a boolean"
	case kindString:
		return "a string"
	case kindArray:
		return "an array"
	case kindObject:
		return "an object"
	default:
		if isInteger(raw) {
			return "an integer"
		}
		return "a decimal"
	}
}

func isInteger(raw json.RawMessage) bool {
	return kindOf(raw) == kindNumber && !bytes.ContainsAny(raw, ".eE")
}

// given reports whether the value is there and not null.
func given(raw json.RawMessage) bool { return kindOf(raw) > kindNull }

// asString returns the decoded string, "" for anything else.
func asString(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// asObject returns the members of a JSON object, nil for anything else.
func asObject(raw json.RawMessage) (o object) {
	_ = json.Unmarshal(raw, &o)
	return o
}

// asArray returns the elements of a JSON array, nil for anything else.
func asArray(raw json.RawMessage) (a []json.RawMessage) {
	_ = json.Unmarshal(raw, &a)
	return a
}

// contentText returns the text of a message's content: the string itself, or its text parts, a line each.
func contentText(content json.RawMessage) string {
	if kindOf(content) != kindArray {
		return asString(content)
	}
	var parts []string
	for _, part := range asArray(content) {
		if text := asString(asObject(part)["text"]); text != "" {
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

// joinObject writes the members as a JSON object.
func joinObject(members []member) json.RawMessage {
	out := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, mustJSON(m.key)...)
		out = append(out, ':')
		out = append(out, m.value...)
	}
	return append(out, '}')
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
