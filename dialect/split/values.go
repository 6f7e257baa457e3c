package split

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Integer is a count, 0 if v is none.
func Integer(v rawjson.Value) int {
	if v.Kind != rawjson.Number || len(v.Raw) > 18 {
		return 0
	}
	n, err := strconv.Atoi(string(v.Raw))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// EndOf is the offset in a text behind a value that was read of it.
func EndOf(text []byte, v rawjson.Value) int {
	for at := 0; ; at++ {
		at += bytes.Index(text[at:], v.Raw)
		if &text[at] == &v.Raw[0] {
			return at + len(v.Raw)
		}
	}
}

// WithMember gives an object with another value for a member, which is added if there is none. Where that is the same, or none is given, the
// object stays as it was written.
func WithMember(object []byte, name string, value []byte) []byte {
	if len(value) == 0 {
		return object
	}
	same, found := true, false
	out := Keep(object, func(key string, v *rawjson.Value) bool {
		if key == name {
			same, found, v.Raw = same && bytes.Equal(v.Raw, value), true, value
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

// WithoutMember gives an object without a member. One that has no such member stays as it was written.
func WithoutMember(object []byte, name string) []byte {
	found := false
	out := Keep(object, func(key string, _ *rawjson.Value) bool {
		found = found || key == name
		return key != name
	})
	if !found {
		return object
	}
	return append(out, '}')
}

// TextOrJSON is the text of a string, or the value itself: some agents send arguments as an object.
func TextOrJSON(v rawjson.Value) string {
	switch v.Kind {
	case rawjson.String:
		return v.Text()
	case rawjson.Null:
		return ""
	}
	return string(v.Raw)
}

// Without gives a list without the elements that go, nil if none stays. What is no list, or loses nothing, stays as it is.
func Without(list rawjson.Value, goes func(rawjson.Value) bool) []byte {
	if list.Kind != rawjson.Array {
		return list.Raw
	}
	all, stay := 0, [][]byte(nil)
	for element := range rawjson.Elements(list.Raw) {
		if all++; !goes(element) {
			stay = append(stay, element.Raw)
		}
	}
	switch len(stay) {
	case all:
		return list.Raw
	case 0:
		return nil
	}
	return List(stay)
}

// AppendMember adds a member to an object that is being written.
func AppendMember(object []byte, key rawjson.Key, value []byte) []byte {
	if len(object) > 1 {
		object = append(object, ',')
	}
	object = append(append(append(object, '"'), key.Raw...), `":`...)
	return append(object, value...)
}

// HasElements reports whether v is a list that is not empty.
func HasElements(v rawjson.Value) bool {
	for range rawjson.Elements(v.Raw) {
		return v.Kind == rawjson.Array
	}
	return false
}

// Any reports whether an element of a list is such.
func Any(list rawjson.Value, such func(rawjson.Value) bool) bool {
	for element := range rawjson.Elements(list.Raw) {
		if such(element) {
			return true
		}
	}
	return false
}

// AnswerShare is how many times what is wanted of an answer it may have, where the model reasons before it writes.
const AnswerShare = 4

// Keep gives an object without the members that do not stay; those that do may get another value. Its end is missing: others may follow.
func Keep(object []byte, stays func(name string, v *rawjson.Value) bool) []byte {
	out := append(make([]byte, 0, len(object)+64), '{')
	for key, v := range rawjson.Members(object) {
		if stays(string(key.Raw), &v) {
			out = AppendMember(out, key, v.Raw)
		}
	}
	return out
}

// Written is a message of a role that carries text, as most protocols write it.
func Written(role, text string) []byte {
	b := make([]byte, 0, len(text)+len(text)/16+64) // a summary is long
	b = append(b, `{"role":"`+role+`","content":`...)
	return append(rawjson.AppendQuote(b, text), '}')
}

// List writes a list of elements.
func List(elements [][]byte) []byte { return slices.Concat([]byte{'['}, Join(elements), []byte{']'}) }

// Join writes elements with commas between them.
func Join(elements [][]byte) []byte { return bytes.Join(elements, []byte{','}) }

// Raws are the elements of a list.
func Raws(list rawjson.Value) (elements [][]byte) {
	for element := range rawjson.Elements(list.Raw) {
		elements = append(elements, element.Raw)
	}
	return elements
}

// Parts are those of a content. A text is one, of that type, and null is none.
func Parts(content rawjson.Value, kind string) [][]byte {
	if content.Kind == rawjson.String {
		return [][]byte{slices.Concat([]byte(`{"type":"`+kind+`","text":`), content.Raw, []byte{'}'})}
	}
	return Raws(content)
}
