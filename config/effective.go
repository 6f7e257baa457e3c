package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
	"github.com/dewpoint-proxy/dewpoint/internal/known/provider"
)

// Effective returns the whole configuration as YAML, with defaults and without secrets. Loading it gives the same configuration, except for
// secrets and for zeros that stand for a default: the default is shown in place of the zero, unless it depends on the machine. Tenants of
// TenantsDir are listed under tenants, and TenantsDir is left out.
func (c *Config) Effective() ([]byte, error) {
	root, err := yaml.ValueToNode(c.encode(writer{}))
	if err != nil {
		return nil, fmt.Errorf("effective configuration: %w", err)
	}
	ast.Walk(quoter{}, root)
	return []byte(root.String() + "\n"), nil
}

// quoter puts every string that is not a plain word in double quotes. The encoder leaves some of them bare, for example with line breaks, and
// they would be read back as something else.
type quoter struct{}

func (q quoter) Visit(n ast.Node) ast.Visitor {
	s, ok := n.(*ast.StringNode)
	if !ok || syntax.Plain(s.Value) {
		return q
	}
	if text, err := strconv.Unquote(s.Value); err == nil {
		s.Value = text // the encoder had quoted it
	}
	s.Token.Type = token.DoubleQuoteType
	return q
}

// EffectiveJSON is Effective as JSON with sorted keys.
func (c *Config) EffectiveJSON() ([]byte, error) {
	text, err := json.Marshal(c.encode(writer{json: true}))
	if err != nil {
		return nil, fmt.Errorf("effective configuration: %w", err)
	}
	return text, nil
}

// EncodeCondenser returns the settings of a condenser as JSON with sorted keys, without secrets.
func EncodeCondenser(c Condenser) []byte {
	text, _ := json.Marshal(writer{json: true}.value(reflect.ValueOf(c))) // strings, numbers and lists: cannot fail
	return text
}

func (c *Config) encode(w writer) any {
	whole := *c
	whole.TenantsDir = ""
	if whole.Upstream.BaseURL == "" {
		for _, p := range provider.Names() {
			whole.Upstream.provider(p).BaseURL = c.UpstreamFor(Tenant{}, p).BaseURL
		}
	}
	w.zeros = map[string]any{"LLM.timeout": c.Limits.SummariserTimeout, "Memory.max_pending": DefaultPending,
		"Memory.max_age": DefaultPendingAge, "Knowledge.max_tokens": DefaultKnowledge}
	return w.value(reflect.ValueOf(whole))
}

// writer converts a part of the configuration into values for an encoder of YAML or JSON. Durations, sizes and secrets become text.
type writer struct {
	json  bool
	zeros map[string]any // by type and key: the default that 0 stands for, if the section is set
}

// section returns ordered items for YAML, and a map for JSON, which sorts its keys.
func (w writer) section(items yaml.MapSlice) any {
	if !w.json {
		return items
	}
	all := map[string]any{}
	for _, item := range items {
		all[item.Key.(string)] = item.Value
	}
	return all
}

func (w writer) value(v reflect.Value) any {
	if h, ok := v.Interface().(Holdout); ok && h.Condenser == nil {
		return h.Share
	}
	switch {
	case v.Kind() == reflect.Pointer:
		return w.value(v.Elem())
	case syntax.IsScalar(v.Type()):
		return w.scalar(v)
	case v.Kind() == reflect.Struct:
		return w.section(w.fields(v))
	case v.Kind() == reflect.Map:
		return w.section(w.entries(v))
	}
	list := []any{}
	for i := range v.Len() {
		list = append(list, w.value(v.Index(i)))
	}
	return list
}

// fields omits optional fields that are not set, and fields of a condenser that do not belong to its type.
func (w writer) fields(v reflect.Value) (section yaml.MapSlice) {
	keys := syntax.KeysOf(v.Type())
	if c, ok := v.Interface().(Condenser); ok {
		keys = append(slices.Clone(c.Entry().Keys), "type")
	}
	for f, value := range v.Fields() {
		name, optional := syntax.KeyOf(f), strings.HasSuffix(f.Tag.Get("yaml"), ",omitempty")
		meant, ok := w.zeros[v.Type().Name()+"."+name]
		if ok && value.IsZero() && !v.IsZero() {
			value = reflect.ValueOf(meant)
		}
		if slices.Contains(keys, name) && !(optional && value.IsZero()) {
			section = append(section, yaml.MapItem{Key: name, Value: w.value(value)})
		}
	}
	return section
}

func (w writer) entries(v reflect.Value) (section yaml.MapSlice) {
	names := v.MapKeys()
	slices.SortFunc(names, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	for _, name := range names {
		section = append(section, yaml.MapItem{Key: name.String(), Value: w.value(v.MapIndex(name))})
	}
	return section
}

func (w writer) scalar(v reflect.Value) any {
	switch value := v.Interface().(type) {
	case fmt.Stringer: // a duration, a size, a secret
		return value.String()
	case string:
		if !w.json {
			return syntax.Escape(value) // since ${ is expanded in files
		}
	}
	return v.Interface()
}
