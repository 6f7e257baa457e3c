package config

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// EffectiveJSON returns what Effective does, as JSON: keys in order, durations and sizes as text.
func (c *Config) EffectiveJSON() ([]byte, error) {
	text, err := json.Marshal(plain(reflect.ValueOf(*c)))
	if err != nil {
		return nil, fmt.Errorf("effective configuration: %w", err)
	}
	return text, nil
}

// plain turns a part of the configuration into what package json knows. A nil pointer is left out by its key.
func plain(v reflect.Value) any {
	switch {
	case v.Kind() == reflect.Pointer:
		return plain(v.Elem())
	case isScalar(v.Type()):
		return plainScalar(v)
	case v.Kind() == reflect.Struct:
		return plainKeys(v)
	case v.Kind() == reflect.Map:
		out := map[string]any{}
		for name, entry := range v.Seq2() {
			out[name.String()] = plain(entry)
		}
		return out
	}
	out := []any{}
	for i := range v.Len() {
		out = append(out, plain(v.Index(i)))
	}
	return out
}

func plainKeys(v reflect.Value) map[string]any {
	mine, out := fieldsOf(v), map[string]any{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, skip := keyOf(f), strings.HasSuffix(f.Tag.Get("yaml"), ",omitempty") && v.Field(i).IsZero()
		if name != "" && !skip && slices.Contains(mine, name) {
			out[name] = plain(v.Field(i))
		}
	}
	return out
}

func plainScalar(v reflect.Value) any {
	switch value := v.Interface().(type) {
	case time.Duration:
		return value.String()
	case encoding.TextMarshaler: // Secret, Bytes
		text, _ := value.MarshalText()
		return string(text)
	default:
		return value
	}
}
