package split

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Object is what an object has of the keys that are known of its kind.
type Object struct {
	Raw    []byte
	More   bool // it has other members, too
	keys   []string
	values [maxKeys]rawjson.Value
}

// maxKeys is how many keys may be known of a kind of objects.
const maxKeys = 16

// longestKey is how long a key may be that is written with escapes.
const longestKey = 256

// Read gives the members of a checked object by these keys. The last of several of one name counts. What is no object has none.
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

// Get is the value of a known key; its Kind is 0 where the object has none.
func (o *Object) Get(key string) rawjson.Value { return o.values[slices.Index(o.keys, key)] }

// Member is the value at a path of keys, absent if there is none. The last of several of one name counts.
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
