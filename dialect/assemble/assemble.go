// Package assemble joins the pieces of a streamed answer into a message that the proxy sends back to upstream, and turns
// several answers into one for the client. What a client wrote is never assembled from decoded JSON, only spliced.
package assemble

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Piece is a decoded JSON object: a message that is being assembled, or a piece of it from a stream.
type Piece = map[string]any

// Raw is a value in a Piece that is encoded already.
type Raw = json.RawMessage

// Decode decodes an object. It returns nil if raw is not an object.
func Decode(raw []byte) (p Piece) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&p) != nil {
		return nil
	}
	return p
}

// Encode encodes a value. It returns nil if that fails.
func Encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// growingText is a text to which Add has appended. A string would be copied for each piece.
type growingText struct{ strings.Builder }

func (t *growingText) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Text returns a value of a Piece if it is a text.
func Text(v any) (text string, ok bool) {
	if grown, ok := v.(*growingText); ok {
		return grown.String(), true
	}
	text, ok = v.(string)
	return text, ok
}

// Add adds a piece of a stream to an object. Texts are appended, except for ids and names; list elements are matched by
// their index.
func Add(to, more Piece) {
	for key, v := range more {
		switch old := to[key].(type) {
		case string:
			whole := slices.Contains([]string{"id", "type", "name", "role", "format"}, key) // arrives in one piece, which may be repeated
			if text, ok := v.(string); ok && (old == "" || !whole) {
				grown := &growingText{}
				grown.WriteString(old)
				grown.WriteString(text)
				to[key] = grown
			}
		case *growingText:
			if text, ok := v.(string); ok {
				old.WriteString(text)
			}
		case Piece:
			if inner, ok := v.(Piece); ok {
				Add(old, inner)
			}
		case []any:
			if list, ok := v.([]any); ok {
				to[key] = addToList(old, list)
			}
		default:
			if v != nil || old == nil {
				to[key] = v
			}
		}
	}
}

func addToList(to, more []any) []any {
	for _, v := range more {
		piece, ok := v.(Piece)
		if element := continued(to, piece); ok && element != nil {
			Add(element, piece)
			continue
		}
		to = append(to, v)
	}
	return to
}

// continued returns the element of a list that a piece continues, or nil if the piece starts a new one. A piece with an
// index continues the newest element with that index, unless their ids differ: some servers give every call the index 0.
// A piece without an index continues the last element if that is of the same type and has no signature yet.
func continued(list []any, piece Piece) Piece {
	if len(list) == 0 {
		return nil
	}
	if piece["index"] == nil {
		last, _ := list[len(list)-1].(Piece)
		if same(last["type"], piece["type"]) && last["signature"] == nil {
			return last
		}
		return nil
	}
	for _, v := range slices.Backward(list) {
		element, _ := v.(Piece)
		if !same(element["index"], piece["index"]) {
			continue
		}
		if id, _ := piece["id"].(string); id != "" && element["id"] != nil && element["id"] != id {
			return nil
		}
		return element
	}
	return nil
}

// same reports whether two values are the same number or string. Objects and lists are never the same.
func same(a, b any) bool {
	switch a.(type) {
	case json.Number, string:
		return a == b
	}
	return false
}
