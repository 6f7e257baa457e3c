// Package assemble joins the pieces of a streamed answer into a message that the proxy sends back to upstream, and turns
// several answers into one for the client. What a client wrote is never assembled from decoded JSON, only spliced.
package assemble

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
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

// growingList is a list to which Add has appended.
type growingList struct {
	elements []any
	newest   map[any]Piece // the newest element with an index that is a number or a string
}

func (l *growingList) MarshalJSON() ([]byte, error) { return Encode(l.elements), nil }

func (l *growingList) append(v any) {
	l.elements = append(l.elements, v)
	if element, ok := v.(Piece); ok && isIndex(element["index"]) {
		l.newest[element["index"]] = element
	}
}

// Size returns about how many bytes a decoded value takes.
func Size(v any) int {
	const word, object = 16, 256 // bytes of a value, and of an object in addition to its members
	switch v := v.(type) {
	case string:
		return word + len(v)
	case json.Number:
		return word + len(v)
	case []any:
		n := 2 * word
		for _, element := range v {
			n += Size(element)
		}
		return n
	case Piece:
		n := object
		for key, member := range v {
			n += word + len(key) + Size(member)
		}
		return n
	}
	return word
}

// Decodes reports whether a value of less than dialect.MaxEvent bytes can be decoded in memory of about that size. A value of many small ones may
// take a multiple of its text.
func Decodes(raw []byte) bool {
	const value = 64 // bytes
	inString, escaped := false, false
	left := dialect.MaxEvent
	for _, c := range raw {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped = c == '\\'
			inString = c != '"'
		case c == '"':
			inString = true
		case c == '{', c == '[', c == ',':
			left -= value
		}
	}
	return left > 0
}

// Add adds a piece of a stream to an object. Texts are appended, except for ids and names; list elements are matched by
// their index. It returns about how many bytes the object has grown by.
func Add(to, more Piece) (grown int) {
	for key, v := range more {
		switch old := to[key].(type) {
		case string:
			whole := slices.Contains([]string{"id", "type", "name", "role", "format"}, key) // arrives in one piece, which may be repeated
			if text, ok := v.(string); ok && (old == "" || !whole) {
				longer := &growingText{}
				longer.WriteString(old)
				longer.WriteString(text)
				to[key] = longer
				grown += len(text)
			}
		case *growingText:
			if text, ok := v.(string); ok {
				old.WriteString(text)
				grown += len(text)
			}
		case Piece:
			if inner, ok := v.(Piece); ok {
				grown += Add(old, inner)
			}
		case []any:
			if list, ok := v.([]any); ok {
				longer := &growingList{newest: map[any]Piece{}}
				for _, element := range old {
					longer.append(element)
				}
				to[key] = longer
				grown += longer.add(list)
			}
		case *growingList:
			if list, ok := v.([]any); ok {
				grown += old.add(list)
			}
		default:
			if v != nil || old == nil {
				to[key] = v
				grown += len(key) + Size(v)
			}
		}
	}
	return grown
}

func (l *growingList) add(more []any) (grown int) {
	for _, v := range more {
		piece, ok := v.(Piece)
		if element := l.continued(piece); ok && element != nil {
			grown += Add(element, piece)
			continue
		}
		l.append(v)
		grown += Size(v)
	}
	return grown
}

// continued returns the element of the list that a piece continues, or nil if the piece starts a new one. A piece with an
// index continues the newest element with that index, unless their ids differ: some servers give every call the index 0.
// A piece without an index continues the last element if that is of the same type and has no signature yet.
func (l *growingList) continued(piece Piece) Piece {
	if len(l.elements) == 0 {
		return nil
	}
	if piece["index"] == nil {
		last, _ := l.elements[len(l.elements)-1].(Piece)
		if isIndex(last["type"]) && last["type"] == piece["type"] && last["signature"] == nil {
			return last
		}
		return nil
	}
	if !isIndex(piece["index"]) {
		return nil
	}
	element := l.newest[piece["index"]]
	if id, _ := piece["id"].(string); id != "" && element["id"] != nil && element["id"] != id {
		return nil
	}
	return element
}

// isIndex reports whether a value is a number or a string: objects and lists cannot be compared.
func isIndex(v any) bool {
	switch v.(type) {
	case json.Number, string:
		return true
	}
	return false
}
