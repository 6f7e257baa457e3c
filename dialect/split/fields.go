package split

import (
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// MaxField limits the length of a session field, and of an id or a name in an answer, in bytes.
const MaxField = 512

// userID is the session field whose value is a JSON object encoded as a string.
const userID = "metadata.user_id"

// sessionFields returns the session fields of the body by path, or nil if there are none.
func (w *Walker) sessionFields() (found map[string]string, err error) {
	for _, path := range w.splitter.options.Fields {
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

// field returns the value at a path. It rejects a key of the path that occurs twice.
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
				if whole := strings.Join(keys[:n+2], "."); slices.Contains(w.splitter.options.Fields, whole) {
					key = whole
				}
				return v, w.reject(dialect.CodeDuplicateKey, key, "occurs twice; send it once")
			}
			v = member
		}
	}
	return v, nil
}

// fieldText returns the text of a session field, or "" if it has none.
func fieldText(path string, v rawjson.Value) string {
	if path != userID {
		return Truncate(v.Text())
	}
	text := []byte(v.Text())
	if rawjson.Valid(text, 0) != nil {
		return ""
	}
	return Truncate(Member(rawjson.ValueOf(text), "session_id").Text())
}

// Truncate shortens text to at most MaxField bytes without splitting a character.
func Truncate(text string) string {
	if len(text) <= MaxField {
		return text
	}
	return strings.Clone(strings.ToValidUTF8(text[:MaxField], ""))
}
