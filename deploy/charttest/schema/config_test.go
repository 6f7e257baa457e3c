package schema

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

type schema = map[string]any

const (
	variable = `\$\{[A-Za-z_][A-Za-z0-9_]*\}` // ${NAME}
	amount   = `[0-9]+(\.[0-9]+)?`
)

// walker describes types. It remembers which constraints met a key.
type walker struct {
	known map[string]schema
	used  map[string]bool
}

// configuration returns the definitions of a Config and of what in it contains itself.
func (w walker) configuration() schema {
	return schema{
		"config":           w.object(reflect.TypeFor[config.Config](), ""),
		"tenant":           w.tenant(),
		"condenser":        w.condenser(true),
		"defaultCondenser": w.condenser(false),
		"override":         w.object(reflect.TypeFor[config.Override](), "override"),
	}
}

// of describes the values of a type. The path is the key's, with * for a name and [] for an element.
func (w walker) of(t reflect.Type, path string) schema {
	switch t {
	case reflect.TypeFor[config.Secret]():
		return matching(`^(` + variable + `)?$`)
	case reflect.TypeFor[time.Duration]():
		return matching(`^(0|(` + amount + `(ns|us|µs|ms|s|m|h))+|` + variable + `)$`)
	case reflect.TypeFor[limit.Period]():
		return matching(`^(0|day|month|[0-9]+d|(` + amount + `(ns|us|µs|ms|s|m|h))+|` + variable + `)$`)
	case reflect.TypeFor[limit.Bytes]():
		return schema{"type": []string{"string", "integer"}, "minimum": 0, "pattern": `^([0-9]+ ?([kKmMgG]?[bB]|[kKmMgG]i[bB])?|` + variable + `)$`}
	case reflect.TypeFor[config.Condenser]():
		switch {
		case path == "condenser":
			return reference("defaultCondenser")
		case strings.HasSuffix(path, ".condenser"): // an empty one means the default
			return schema{"anyOf": []schema{reference("condenser"), {"type": "object", "additionalProperties": false}}}
		}
		return reference("condenser")
	case reflect.TypeFor[config.Holdout](): // its share, or a section
		return schema{"anyOf": []schema{{"type": "number", "minimum": 0}, w.object(t, path)}}
	case reflect.TypeFor[config.Override]():
		return reference("override")
	case reflect.TypeFor[[]config.Tenant]():
		return tenants(w.known["tenants[].name"])
	}
	return w.ofKind(t, path)
}

// tenants are a list, or a map by their names.
func tenants(name schema) schema {
	named := schema{"type": "object", "required": []string{"name"}}
	return schema{
		"type": []string{"array", "object"}, "items": schema{"allOf": []schema{named, reference("tenant")}},
		"propertyNames": name, "additionalProperties": reference("tenant"),
	}
}

// tenant may be null, which takes one of another file of values out.
func (w walker) tenant() schema {
	described := w.named(reflect.TypeFor[config.Tenant](), "tenants[]")
	described["type"] = []string{"object", "null"}
	return described
}

func (w walker) ofKind(t reflect.Type, path string) schema {
	switch t.Kind() {
	case reflect.Pointer:
		return w.of(t.Elem(), path)
	case reflect.Struct:
		return w.object(t, path)
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": w.named(t.Elem(), path+".*")}
	case reflect.Slice:
		return schema{"type": "array", "items": w.named(t.Elem(), path+"[]")}
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Float64:
		return schema{"type": "number", "minimum": 0}
	case reflect.Int, reflect.Int64:
		return schema{"type": "integer", "minimum": 0}
	}
	panic(fmt.Sprintf("%s: no schema for a %s", path, t)) // a new kind of key: give it one
}

// named is of with what is known of that very key.
func (w walker) named(t reflect.Type, path string) schema {
	described := w.of(t, path)
	for key, constraint := range w.known[path] {
		described[key] = constraint
		w.used[path] = true
	}
	return described
}

func (w walker) object(t reflect.Type, path string) schema {
	properties := schema{}
	for _, key := range keys(t) {
		below := strings.TrimPrefix(path+"."+key.name, ".")
		if !made(below) {
			properties[key.name] = w.named(key.field, below)
		}
	}
	return closed(properties)
}

func closed(properties schema) schema {
	return schema{"type": "object", "additionalProperties": false, "properties": properties}
}

// made says whether the chart itself makes a key, and needs to know its value.
func made(path string) bool { return path == "admin.token" }

type key struct {
	name  string
	field reflect.Type
}

// keys lists what may be configured in a struct.
func keys(t reflect.Type) []key {
	var found []key
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if name != "-" && name != "" {
			found = append(found, key{name, field.Type})
		}
	}
	return found
}

func matching(pattern string) schema { return schema{"type": "string", "pattern": pattern} }

func reference(definition string) schema { return schema{"$ref": "#/definitions/" + definition} }
