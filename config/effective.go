package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// Effective returns the whole configuration as YAML, defaults included and secrets redacted. Loading it gives the same
// configuration, but for the secrets: the tenants of TenantsDir are among tenants, and the folder is left out.
func (c *Config) Effective() ([]byte, error) {
	root, err := yaml.ValueToNode(c.written(syntax.Escape))
	if err != nil {
		return nil, fmt.Errorf("effective configuration: %w", err)
	}
	ast.Walk(quoter{}, root)
	return []byte(root.String() + "\n"), nil
}

// quoter puts every string that is not a plain word in double quotes. The encoder alone leaves some of them bare, with
// line breaks for example, which are read back as something else.
type quoter struct{}

func (q quoter) Visit(n ast.Node) ast.Visitor {
	s, ok := n.(*ast.StringNode)
	if !ok || syntax.Plain(s.Value) {
		return q
	}
	if text, err := strconv.Unquote(s.Value); err == nil {
		s.Value = text // what the encoder did quote starts with a quote
	}
	s.Token.Type = token.DoubleQuoteType
	return q
}

// EffectiveJSON returns what Effective does, as JSON with sorted keys.
func (c *Config) EffectiveJSON() ([]byte, error) {
	verbatim := func(text string) string { return text }
	text, err := json.Marshal(unordered(c.written(verbatim)))
	if err != nil {
		return nil, fmt.Errorf("effective configuration: %w", err)
	}
	return text, nil
}

func (c *Config) written(text func(string) string) any {
	whole := *c
	whole.TenantsDir = ""
	return writer{text}.value(reflect.ValueOf(whole))
}

// writer turns a part of the configuration into values that an encoder knows, with durations, sizes and secrets as text.
type writer struct{ text func(string) string }

func (w writer) value(v reflect.Value) any {
	switch {
	case v.Kind() == reflect.Pointer:
		return w.value(v.Elem())
	case syntax.IsScalar(v.Type()):
		return w.scalar(v)
	case v.Kind() == reflect.Struct:
		return w.section(v)
	case v.Kind() == reflect.Map:
		return w.names(v)
	}
	list := []any{}
	for i := range v.Len() {
		list = append(list, w.value(v.Index(i)))
	}
	return list
}

// section leaves out what is optional and not set, and of a condenser what does not belong to its type.
func (w writer) section(v reflect.Value) yaml.MapSlice {
	keys := syntax.KeysOf(v.Type())
	if c, ok := v.Interface().(Condenser); ok {
		keys = append(CondenserKeys(c.Type), "type")
	}
	section := yaml.MapSlice{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, optional := syntax.KeyOf(f), strings.HasSuffix(f.Tag.Get("yaml"), ",omitempty")
		if slices.Contains(keys, name) && !(optional && v.Field(i).IsZero()) {
			section = append(section, yaml.MapItem{Key: name, Value: w.value(v.Field(i))})
		}
	}
	return section
}

func (w writer) names(v reflect.Value) yaml.MapSlice {
	entries := map[string]any{}
	for name, entry := range v.Seq2() {
		entries[name.String()] = w.value(entry)
	}
	section := yaml.MapSlice{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		section = append(section, yaml.MapItem{Key: name, Value: entries[name]})
	}
	return section
}

func (w writer) scalar(v reflect.Value) any {
	switch value := v.Interface().(type) {
	case fmt.Stringer: // a duration, a size, a secret
		return value.String()
	case string:
		return w.text(value)
	default:
		return value
	}
}

// unordered turns sections into maps, which package json can encode.
func unordered(value any) any {
	switch value := value.(type) {
	case yaml.MapSlice:
		section := map[string]any{}
		for _, item := range value {
			section[item.Key.(string)] = unordered(item.Value)
		}
		return section
	case []any:
		for i := range value {
			value[i] = unordered(value[i])
		}
	}
	return value
}
