package split

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Opening reports whether is holds for all objects in an event of a stream. It is true of an event without data, such as a comment.
func Opening(event []byte, is func(rawjson.Value) bool) bool {
	opening := true
	events := Events{MaxBytes: MaxAnswer, Take: func(data []byte) bool {
		object := IsObject(data)
		opening = opening && object && is(rawjson.ValueOf(data))
		return object
	}}
	events.Write(event)
	return opening
}

// Blank reports whether a value is missing, null, false or empty, or all its members and elements are, apart from the members named.
func Blank(v rawjson.Value, apart ...string) bool {
	for key, member := range rawjson.Members(v.Raw) {
		if !slices.Contains(apart, string(key.Raw)) && !Blank(member, apart...) {
			return false
		}
	}
	for element := range rawjson.Elements(v.Raw) {
		if !Blank(element, apart...) {
			return false
		}
	}
	return v.Kind != rawjson.Number && v.Kind != rawjson.True && len(v.Inner()) == 0
}
