// Package assemble puts together what a model says from the pieces in which a stream brings it, where the proxy has to send it back to
// upstream by itself. What a client wrote never comes here: that is spliced.
package assemble

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Piece is a JSON object, decoded: a message that is put together, or what a stream brings of one.
type Piece = map[string]any

// Raw is what stands in a piece as it is written.
type Raw = json.RawMessage

// Decode decodes an object; of what is none it gives nil.
func Decode(raw []byte) (p Piece) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&p) != nil {
		return nil
	}
	return p
}

// Encode writes a value.
func Encode(v any) []byte {
	Settle(v)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// grown is a text that pieces are added to: a string would be copied for each.
type grown struct{ strings.Builder }

// Settle makes strings of the texts that have grown in a value, in place. Before that they are no strings to a reader.
func Settle(v any) {
	switch v := v.(type) {
	case Piece:
		for key, inner := range v {
			if g, is := inner.(*grown); is {
				v[key] = g.String()
				continue
			}
			Settle(inner)
		}
	case []any:
		for _, inner := range v {
			Settle(inner)
		}
	}
}

// Add adds what a stream brings to an object: texts grow, elements of lists that have an index come together by it, and names stay.
func Add(to, more Piece) {
	for key, v := range more {
		switch old := to[key].(type) {
		case string:
			if text, is := v.(string); is && (old == "" || !stays(key)) {
				g := &grown{}
				g.WriteString(old)
				g.WriteString(text)
				to[key] = g
			}
		case *grown:
			if text, is := v.(string); is {
				old.WriteString(text)
			}
		case Piece:
			if inner, is := v.(Piece); is {
				Add(old, inner)
			}
		case []any:
			if list, is := v.([]any); is {
				to[key] = assembleList(old, list)
			}
		default:
			if v != nil || old == nil {
				to[key] = v
			}
		}
	}
}

// stays reports whether a member is whole when it comes first, however often it is repeated.
func stays(key string) bool {
	switch key {
	case "id", "type", "name", "role", "format":
		return true
	}
	return false
}

func assembleList(to, more []any) []any {
	for _, v := range more {
		piece, is := v.(Piece)
		if at := lastOf(to, piece); is && at != nil {
			Add(at, piece)
			continue
		}
		to = append(to, v)
	}
	return to
}

// lastOf is the newest element that a piece goes on with, nil if it begins another one: some servers give every call the index 0.
func lastOf(list []any, piece Piece) Piece {
	for i := len(list) - 1; i >= 0; i-- {
		at, _ := list[i].(Piece)
		if piece["index"] != nil {
			if same(at["index"], piece["index"]) {
				if id, _ := piece["id"].(string); id != "" && at["id"] != nil && at["id"] != id {
					return nil
				}
				return at
			}
			continue
		}
		if same(at["type"], piece["type"]) && at["signature"] == nil { // what was signed is over
			return at
		}
		return nil
	}
	return nil
}

// same reports whether two values are the same number or text. Objects and lists are not compared.
func same(a, b any) bool {
	switch a.(type) {
	case json.Number, string:
		return a == b
	}
	return false
}
