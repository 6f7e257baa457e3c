package fakeupstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
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
	d := decoder{text, 0}
	return d.next()
}

// decoder decodes a valid JSON text. It exists because agents send their whole history at each step, so that most of the time of a long
// run would be spent on the tokens of encoding/json.
type decoder struct {
	text json.RawMessage
	at   int
}

// next decodes the next value.
func (d *decoder) next() (v value) {
	d.skip()
	start := d.at
	v.kind = cmp.Or(kinds[d.text[start]], kindNumber)
	d.at++
	switch v.kind {
	case kindString:
		v.text = d.string()
	case kindArray:
		for d.more() {
			v.elements = append(v.elements, d.next())
		}
	case kindObject:
		for d.more() {
			key := d.next().text
			member := d.next()
			member.key = key
			v.members = append(v.members, member)
		}
	default:
		for d.at < len(d.text) && strings.IndexByte(" \t\r\n,]}", d.text[d.at]) < 0 {
			d.at++
		}
	}
	v.raw = d.text[start:d.at:d.at]
	return v
}

// skip skips white space and punctuation between two values.
func (d *decoder) skip() {
	for d.at < len(d.text) && strings.IndexByte(" \t\r\n,:", d.text[d.at]) >= 0 {
		d.at++
	}
}

// more reports whether the array or object has another value. If not, it skips the end.
func (d *decoder) more() bool {
	d.skip()
	if c := d.text[d.at]; c != ']' && c != '}' {
		return true
	}
	d.at++
	return false
}

// string decodes a string, from after its first quotation mark on.
func (d *decoder) string() (text string) {
	start, plain := d.at, true
	for ; d.text[d.at] != '"'; d.at++ {
		if d.text[d.at] == '\\' {
			d.at++
			plain = false
		}
	}
	d.at++
	if raw := d.text[start : d.at-1]; plain && utf8.Valid(raw) {
		return string(raw)
	}
	_ = json.Unmarshal(d.text[start-1:d.at], &text)
	return text
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

// each returns the result of encode for each value.
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
	if gemini := message.at("parts"); gemini.given() {
		content = gemini
	}
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

// changed returns an object in which some members have other values. Members whose new value is "" are dropped.
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
