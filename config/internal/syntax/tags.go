package syntax

import (
	"reflect"
	"strings"
)

// IsScalar reports whether a field of this type is one value, and so has one environment variable.
func IsScalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return true
	case reflect.Pointer:
		return IsScalar(t.Elem())
	}
	return false
}

// KeyOf returns the key of a struct field, or "" for a field that is not configured.
func KeyOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	if name == "-" {
		return ""
	}
	return name
}

// KeysOf lists the keys of a struct type.
func KeysOf(t reflect.Type) []string {
	var keys []string
	for f := range t.Fields() {
		if key := KeyOf(f); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}
