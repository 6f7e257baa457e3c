package split

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// MaxField is how many bytes of a session field are kept, and of an id or name in an answer.
const MaxField = 512

// userID is the field whose value is JSON in text.
const userID = "metadata.user_id"

// sessionFields gives the fields that the body has, nil if none.
func (w *Walker) sessionFields() (found map[string]string, err error) {
	for _, path := range w.of.options.Fields {
		v, err := w.field(path)
		if err != nil {
			return nil, err
		}
		if text := fieldText(path, v); text != "" {
			if found == nil {
				found = make(map[string]string)
			}
			found[path] = text
		}
	}
	return found, nil
}

// field is the value at a path. A key of it that occurs twice is refused.
func (w *Walker) field(path string) (v rawjson.Value, err error) {
	keys := strings.Split(path, ".")
	v = w.Member(keys[0])
	for n, key := range keys[1:] {
		object := v
		v = rawjson.Value{}
		for name, member := range rawjson.Members(object.Raw) {
			var buf [longestKey]byte
			if string(name.Name(buf[:0])) != key {
				continue
			}
			if v.Kind != 0 {
				if whole := strings.Join(keys[:n+2], "."); slices.Contains(w.of.options.Fields, whole) {
					key = whole
				}
				return v, w.refused(dialect.CodeDuplicateKey, key, "occurs twice; send it once")
			}
			v = member
		}
	}
	return v, nil
}

// fieldText is what a field says, empty if nothing.
func fieldText(path string, v rawjson.Value) string {
	if path != userID {
		return Cut(v.Text())
	}
	text := []byte(v.Text())
	if rawjson.Valid(text, 0) != nil {
		return ""
	}
	return Cut(Member(rawjson.ValueOf(text), "session_id").Text())
}

// Cut shortens text to MaxField bytes of whole characters.
func Cut(text string) string {
	if len(text) <= MaxField {
		return text
	}
	n := MaxField
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return strings.Clone(text[:n])
}
