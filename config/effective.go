package config

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Effective returns the whole configuration as YAML, defaults included and secrets redacted. Load reads it back as the
// same configuration, but for the secrets.
func (c *Config) Effective() []byte {
	var w yamlWriter
	w.section(reflect.ValueOf(*c), "")
	return []byte(w.out.String())
}

type yamlWriter struct{ out strings.Builder }

func (w *yamlWriter) section(v reflect.Value, indent string) {
	mine := fieldsOf(v)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, skip := keyOf(f), strings.HasSuffix(f.Tag.Get("yaml"), ",omitempty") && v.Field(i).IsZero()
		if name != "" && !skip && slices.Contains(mine, name) {
			w.entry(name, v.Field(i), indent)
		}
	}
}

// fieldsOf lists the keys to write: of a condenser, only its type's.
func fieldsOf(v reflect.Value) []string {
	if c, ok := v.Interface().(Condenser); ok {
		return append(CondenserKeys(c.Type), "type")
	}
	return keysOf(v.Type())
}

// entry writes one key and its value.
func (w *yamlWriter) entry(name string, v reflect.Value, indent string) {
	fmt.Fprintf(&w.out, "%s%s:", indent, quote(name))
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch {
	case isScalar(v.Type()):
		fmt.Fprintf(&w.out, " %s\n", scalarText(v))
	case v.Kind() == reflect.Struct:
		w.out.WriteString("\n")
		w.section(v, indent+"  ")
	case v.Kind() == reflect.Map:
		w.names(v, indent+"  ")
	default:
		w.list(v, indent+"  ")
	}
}

func (w *yamlWriter) names(v reflect.Value, indent string) {
	if v.Len() == 0 {
		w.out.WriteString(" {}\n")
		return
	}
	w.out.WriteString("\n")
	entries := map[string]reflect.Value{}
	for name, entry := range v.Seq2() {
		entries[name.String()] = entry
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		w.entry(name, entries[name], indent)
	}
}

func (w *yamlWriter) list(v reflect.Value, indent string) {
	if v.Len() == 0 {
		w.out.WriteString(" []\n")
		return
	}
	w.out.WriteString("\n")
	for i := range v.Len() {
		if isScalar(v.Type().Elem()) {
			fmt.Fprintf(&w.out, "%s- %s\n", indent, scalarText(v.Index(i)))
			continue
		}
		var item yamlWriter
		if item.section(v.Index(i), indent+"  "); item.out.Len() == 0 {
			item.out.WriteString("{}\n")
		}
		w.out.WriteString(indent + "- " + strings.TrimLeft(item.out.String(), " "))
	}
}

func scalarText(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case time.Duration:
		return value.String()
	case encoding.TextMarshaler: // Secret, Bytes
		text, _ := value.MarshalText()
		return quote(string(text))
	case float64:
		return formatFloat(value)
	case string:
		return quote(escape(value))
	default:
		return fmt.Sprint(value)
	}
}

// quote writes a string as JSON does, which is YAML too, unless it is a plain word that YAML reads as nothing else.
func quote(text string) string {
	lower := strings.ToLower(text)
	word := plainName(text) && lower[0] >= 'a' && lower[0] <= 'z'
	if word && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, lower) {
		return text
	}
	quoted, _ := json.Marshal(text)
	return string(quoted)
}
