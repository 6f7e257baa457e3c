package config

import (
	"reflect"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// Override is an entry of Condenser.PerModel: thresholds of the condenser's type. A nil one is inherited.
type Override struct {
	MaxSize         *int     `yaml:"max_size,omitempty"`
	MaxTokens       *float64 `yaml:"max_tokens,omitempty"`
	MinTokens       *int     `yaml:"min_tokens,omitempty"`
	KeepFirst       *int     `yaml:"keep_first,omitempty"`
	MinimumProgress *float64 `yaml:"minimum_progress,omitempty"`
	MaxEventLength  *int     `yaml:"max_event_length,omitempty"`
	BackgroundAt    *float64 `yaml:"background_at,omitempty"`
	AttentionWindow *int     `yaml:"attention_window,omitempty"`
	Stride          *int     `yaml:"stride,omitempty"`
	MaxEvents       *int     `yaml:"max_events,omitempty"`
}

// With returns the condenser with an override applied, and without PerModel.
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
			keys = append(keys, syntax.KeyOf(value.Type().Field(i)))
		}
	}
	return keys
}

// Thresholds lists the keys that an Override of a canonical type may have.
func Thresholds(condenserType string) []string {
	all := syntax.KeysOf(reflect.TypeFor[Override]())
	return slices.DeleteFunc(CondenserKeys(condenserType), func(key string) bool { return !slices.Contains(all, key) })
}
