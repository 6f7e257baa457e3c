package split

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Integer returns the value of a non-negative integer of at most 18 digits, and 0 for any other value.
func Integer(v rawjson.Value) int {
	if v.Kind != rawjson.Number || len(v.Raw) > 18 {
		return 0
	}
	n, _ := strconv.Atoi(string(v.Raw)) // 0 for any other number
	return max(n, 0)
}

// EndOffset returns the offset in text of the end of v, which must alias text.
func EndOffset(text []byte, v rawjson.Value) int {
	for at := 0; ; at++ {
		at += bytes.Index(text[at:], v.Raw)
		if &text[at] == &v.Raw[0] {
			return at + len(v.Raw)
		}
	}
}

// WithMember sets a member of an object, appending it if the object lacks it. If value is empty, or the member has that
// value, the object is returned unchanged.
func WithMember(object []byte, name string, value []byte) []byte {
	if len(value) == 0 {
		return object
	}
	same, found := true, false
	out := FilterMembers(object, func(key string, v *rawjson.Value) bool {
		if key == name {
			found = true
			same = same && bytes.Equal(v.Raw, value)
			v.Raw = value
		}
		return true
	})
	switch {
	case !found:
		out = AppendMember(out, rawjson.Key{Raw: []byte(name)}, value)
	case same:
		return object
	}
	return append(out, '}')
}

// WithoutMember removes a member of an object. If there is none, the object is returned unchanged.
func WithoutMember(object []byte, name string) []byte {
	found := false
	out := FilterMembers(object, func(key string, _ *rawjson.Value) bool {
		found = found || key == name
		return key != name
	})
	if !found {
		return object
	}
	return append(out, '}')
}

// TextOrJSON returns the text of a string, "" for null, and the raw text of any other value: some agents send arguments as
// an object instead of a string.
func TextOrJSON(v rawjson.Value) string {
	switch v.Kind {
	case rawjson.String:
		return v.Text()
	case rawjson.Null:
		return ""
	}
	return string(v.Raw)
}

// Without removes the elements of a list that match. It returns nil if none is left, and a value that is not a list, or of
// which no element matches, unchanged.
func Without(list rawjson.Value, matches func(rawjson.Value) bool) []byte {
	all := 0
	var kept [][]byte
	for element := range rawjson.Elements(list.Raw) {
		all++
		if !matches(element) {
			kept = append(kept, element.Raw)
		}
	}
	switch len(kept) {
	case all:
		return list.Raw
	case 0:
		return nil
	}
	return List(kept)
}

// AppendMember appends a member to an object that still lacks its closing brace.
func AppendMember(object []byte, key rawjson.Key, value []byte) []byte {
	if len(object) > 1 {
		object = append(object, ',')
	}
	object = append(object, '"')
	object = append(object, key.Raw...)
	object = append(object, `":`...)
	return append(object, value...)
}

// HasElements reports whether v is a list that is not empty.
func HasElements(v rawjson.Value) bool {
	return Any(v, func(rawjson.Value) bool { return true })
}

// Any reports whether an element of a list matches.
func Any(list rawjson.Value, matches func(rawjson.Value) bool) bool {
	for element := range rawjson.Elements(list.Raw) {
		if matches(element) {
			return true
		}
	}
	return false
}

// ReasoningFactor is the ratio of the token limit of an answer to the output that is wanted of it. A model that reasons
// spends tokens before it writes.
const ReasoningFactor = 4

// FilterMembers returns an object with the members for which keep returns true. keep may replace a value. The result lacks
// its closing brace, so that the caller can append members.
func FilterMembers(object []byte, keep func(name string, v *rawjson.Value) bool) []byte {
	out := append(make([]byte, 0, len(object)+64), '{')
	for key, v := range rawjson.Members(object) {
		if keep(string(key.Raw), &v) {
			out = AppendMember(out, key, v.Raw)
		}
	}
	return out
}

// TextMessage encodes a message with a role and text, in the form that most protocols share.
func TextMessage(role, text string) []byte {
	b := make([]byte, 0, len(text)+len(text)/16+64) // a summary is long
	b = append(b, `{"role":"`+role+`","content":`...)
	return append(rawjson.AppendQuote(b, text), '}')
}

// List encodes elements as a list.
func List(elements [][]byte) []byte { return slices.Concat([]byte{'['}, Join(elements), []byte{']'}) }

// Join joins elements with commas.
func Join(elements [][]byte) []byte { return bytes.Join(elements, []byte{','}) }

// Elements returns the raw elements of a list.
func Elements(list rawjson.Value) (elements [][]byte) {
	for element := range rawjson.Elements(list.Raw) {
		elements = append(elements, element.Raw)
	}
	return elements
}

// Parts returns the raw parts of content. A string becomes one text part of the given type.
func Parts(content rawjson.Value, kind string) [][]byte {
	if content.Kind == rawjson.String {
		return [][]byte{slices.Concat([]byte(`{"type":"`+kind+`","text":`), content.Raw, []byte{'}'})}
	}
	return Elements(content)
}

// Object is a JSON object with the values of a fixed set of known keys.
type Object struct {
	Raw    []byte
	More   bool // there are members with other keys
	keys   []string
	values [maxKeys]rawjson.Value
}

// maxKeys is the most keys that an Object can know.
const maxKeys = 16

// longestKey is the longest escaped key that is decoded, in bytes.
const longestKey = 256

// Read returns the members of a validated object that have one of the keys. If a key is repeated, its last value counts.
// A value that is not an object gives an empty Object.
func Read(v rawjson.Value, keys []string) Object {
	o := Object{Raw: v.Raw, keys: keys}
	for key, member := range rawjson.Members(v.Raw) {
		var buf [longestKey]byte
		if i := indexOf(keys, key.Name(buf[:0])); i >= 0 {
			o.values[i] = member
		} else {
			o.More = true
		}
	}
	return o
}

func indexOf(keys []string, name []byte) int {
	return slices.IndexFunc(keys, func(key string) bool { return key == string(name) })
}

// Get returns the value of a known key. Its Kind is 0 if the object lacks the key. It panics if the key is not known.
func (o *Object) Get(key string) rawjson.Value { return o.values[slices.Index(o.keys, key)] }

// Member returns the value at a path of keys. Its Kind is 0 if there is none. If a key is repeated, its last value counts.
func Member(of rawjson.Value, path ...string) rawjson.Value {
	for _, name := range path {
		object := of
		of = rawjson.Value{}
		for key, v := range rawjson.Members(object.Raw) {
			var buf [longestKey]byte
			if string(key.Name(buf[:0])) == name {
				of = v
			}
		}
	}
	return of
}
