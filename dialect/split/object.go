package split

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

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
