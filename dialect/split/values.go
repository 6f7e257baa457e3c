package split

import (
	"bytes"
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

// WithMember gives an object with another value for a member, which is added if there is none.
func WithMember(object []byte, name string, value []byte) []byte {
	out, found := append(make([]byte, 0, len(object)+len(value)), '{'), false
	for key, v := range rawjson.Members(object) {
		if string(key.Raw) == name {
			v.Raw, found = value, true
		}
		out = AppendMember(out, key, v.Raw)
	}
	if !found {
		out = AppendMember(out, rawjson.Key{Raw: []byte(name)}, value)
	}
	return append(out, '}')
}

// WithoutMember gives an object without a member.
func WithoutMember(object []byte, name string) []byte {
	out := append(make([]byte, 0, len(object)), '{')
	for key, v := range rawjson.Members(object) {
		if string(key.Raw) != name {
			out = AppendMember(out, key, v.Raw)
		}
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
	out := append(make([]byte, 0, len(list.Raw)), '[')
	all, stay := 0, 0
	for element := range rawjson.Elements(list.Raw) {
		if all++; goes(element) {
			continue
		}
		if stay++; stay > 1 {
			out = append(out, ',')
		}
		out = append(out, element.Raw...)
	}
	switch {
	case stay == all:
		return list.Raw
	case stay == 0:
		return nil
	}
	return append(out, ']')
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

// AnswerShare is how many times what is wanted of an answer it may have, where the model reasons before it writes.
const AnswerShare = 4

// Keep gives an object without the members that do not stay. Its end is missing: others may follow.
func Keep(object []byte, stays func(name string, v rawjson.Value) bool) []byte {
	out := append(make([]byte, 0, len(object)+64), '{')
	for key, v := range rawjson.Members(object) {
		if stays(string(key.Raw), v) {
			out = AppendMember(out, key, v.Raw)
		}
	}
	return out
}
