package config

import (
	"reflect"
	"slices"
	"strings"
)

// Override is what an entry of Condenser.PerModel sets: thresholds of the condenser's type. What is nil is the
// condenser's own.
type Override struct {
	MaxSize         *int     `yaml:"max_size,omitempty"`
	MaxTokens       *float64 `yaml:"max_tokens,omitempty"`
	KeepFirst       *int     `yaml:"keep_first,omitempty"`
	MinimumProgress *float64 `yaml:"minimum_progress,omitempty"`
	MaxEventLength  *int     `yaml:"max_event_length,omitempty"`
	BackgroundAt    *float64 `yaml:"background_at,omitempty"`
	AttentionWindow *int     `yaml:"attention_window,omitempty"`
	Stride          *int     `yaml:"stride,omitempty"`
	MaxEvents       *int     `yaml:"max_events,omitempty"`
}

// With returns the condenser as a model with that override has it, without PerModel. The receiver stays as it is.
func (c Condenser) With(o Override) Condenser {
	c.PerModel = nil
	from, to := reflect.ValueOf(o), reflect.ValueOf(&c).Elem()
	for i := range from.NumField() {
		if !from.Field(i).IsNil() {
			to.FieldByName(from.Type().Field(i).Name).Set(from.Field(i).Elem())
		}
	}
	return c
}

// keys lists what the override sets.
func (o Override) keys() []string {
	var keys []string
	value := reflect.ValueOf(o)
	for i := range value.NumField() {
		if !value.Field(i).IsNil() {
			keys = append(keys, keyOf(value.Type().Field(i)))
		}
	}
	return keys
}

// thresholds lists the keys that an override of a canonical type may have.
func thresholds(condenserType string) []string {
	all := keysOf(reflect.TypeFor[Override]())
	return slices.DeleteFunc(CondenserKeys(condenserType), func(key string) bool { return !slices.Contains(all, key) })
}

// overrides takes out of the entries of per_model the keys that are no thresholds of the type.
func (c *Condenser) overrides(p *problems, n *node, key string) *node {
	if n.kind != kindTable {
		return n
	}
	kept := &node{kind: kindTable, origin: n.origin}
	for _, f := range n.fields {
		path := join(key, f.name)
		p.givenAt(path, f.node.origin)
		if f.node.kind == kindNull || f.node.kind == kindTable && len(f.node.fields) == 0 {
			p.add(path, "overrides nothing: give it one of %s, or remove it", strings.Join(thresholds(c.Type), ", "))
		}
		if f.node.kind == kindTable {
			f.node = c.override(p, f.node, path)
		}
		kept.fields = append(kept.fields, f)
	}
	return kept
}

func (c *Condenser) override(p *problems, n *node, key string) *node {
	all, mine := keysOf(reflect.TypeFor[Condenser]()), thresholds(c.Type)
	kept := &node{kind: kindTable, origin: n.origin}
	for _, f := range n.fields {
		path := join(key, f.name)
		switch {
		case slices.Contains(mine, f.name):
			kept.fields = append(kept.fields, f)
		case slices.Contains(CondenserKeys(c.Type), f.name) || f.name == "type":
			p.givenAt(path, f.node.origin)
			p.add(path, "is the same for all models: remove it, or use %s", strings.Join(mine, ", "))
		case slices.Contains(all, f.name):
			p.givenAt(path, f.node.origin)
			p.add(path, "does not belong to type %q: %s", c.Type, foreignAdvice(mine))
		default:
			p.unknown(key, f, "use one of "+strings.Join(mine, ", "))
		}
	}
	return kept
}
