package split

import (
	"cmp"
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

// field is a node in the tree of the session fields' paths. It does not change after newFields.
type field struct {
	key    string
	path   string // whole path, empty if none ends here
	number int
	below  []*field
	count  int // of all nodes, in the root
}

func newFields(paths []string) *field {
	root := &field{}
	for _, path := range paths {
		f := root
		for key := range strings.SplitSeq(path, ".") {
			next := f.child([]byte(key))
			if next == nil {
				next = &field{key: key, number: root.count}
				root.count++
				f.below = append(f.below, next)
			}
			f = next
		}
		f.path = path
	}
	return root
}

func (f *field) child(name []byte) *field {
	for _, c := range f.below {
		if c.key == string(name) {
			return c
		}
	}
	return nil
}

// sessionFields gives the fields that the body has, nil if none.
func (w *Walker) sessionFields() (map[string]string, error) {
	var found map[string]string
	var twice *field
	for _, f := range w.of.fields.below {
		v := *w.Slot([]byte(f.key))
		found = f.gather(v, found, &twice)
	}
	if twice != nil {
		return nil, w.refused(dialect.CodeDuplicateKey, cmp.Or(twice.path, twice.key), "occurs twice; send it once")
	}
	return found, nil
}

// gather adds what v holds at f and below, and notes a field that is there twice.
func (f *field) gather(v rawjson.Value, found map[string]string, twice **field) map[string]string {
	if text := f.value(v); text != "" {
		if found == nil {
			found = make(map[string]string)
		}
		found[f.path] = text
	}
	if v.Kind != rawjson.Object || len(f.below) == 0 {
		return found
	}
	var buf [256]byte
	var seen []*field
	for key, member := range rawjson.Members(v.Raw) {
		c := f.child(key.Name(buf[:0]))
		if c == nil {
			continue
		}
		if slices.Contains(seen, c) {
			*twice = c
		}
		seen = append(seen, c)
		found = c.gather(member, found, twice)
	}
	return found
}

func (f *field) value(v rawjson.Value) string {
	if f.path == "" || v.Kind != rawjson.String {
		return ""
	}
	if f.path != userID {
		return Cut(v.Text())
	}
	text := []byte(v.Text())
	if rawjson.Valid(text, 0) != nil {
		return ""
	}
	id := ""
	for key, member := range rawjson.Members(text) {
		if string(key.Raw) == "session_id" {
			id = Cut(member.Text())
		}
	}
	return id
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
