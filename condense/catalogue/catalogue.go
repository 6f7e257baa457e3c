// Package catalogue lists the condensers. An entry says all that the rest of the program, its documentation and its tests need to know about
// one: its names, its keys with their defaults and bounds, what it does, and how it is built.
package catalogue

import (
	"reflect"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// Entry describes a type of condenser.
type Entry struct {
	Type  string // the canonical name
	Alias string // another name in configurations; empty: none
	Doc   string // what it does, for the table in docs/condensers.md

	// Keys lists its keys other than type, in the order in which messages name them. Much follows from them: see the methods.
	Keys     []string
	Defaults map[string]any // by key, where they differ from Key.Default

	Shapes     bool // it changes the view at each step, without a condensation
	Records    bool // a record takes the place of what it hides, which is an event more
	Unrecorded bool // it may hide messages without a record or excerpts in their place

	build func(Settings, parts) condense.Condenser
}

// Has reports whether the type has a key.
func (e Entry) Has(key string) bool { return slices.Contains(e.Keys, key) }

// Rolling reports whether the type condenses once a limit is exceeded.
func (e Entry) Rolling() bool { return e.Has("max_size") }

// Asks reports whether the type calls a model or a service.
func (e Entry) Asks() bool { return e.Has("wait") }

// AsksModel reports whether the type calls a model, which llm_config names.
func (e Entry) AsksModel() bool { return e.Has("llm_config") }

// Wraps reports whether the type consists of other condensers.
func (e Entry) Wraps() bool { return e.Has("condensers") }

// Forgets reports whether the type can make condensations that hide messages, rather than only change views. Of a type that wraps others, its
// stages say so.
func (e Entry) Forgets() bool { return e.Has("condense_command") && !e.Wraps() }

// Thresholds lists the keys that may differ by model.
func (e Entry) Thresholds() []string {
	all := map[string]bool{}
	for f := range reflect.TypeFor[Override]().Fields() {
		all[keyOf(f)] = true
	}
	return slices.DeleteFunc(slices.Clone(e.Keys), func(key string) bool { return !all[key] })
}

// Default returns the default of a key of the type; nil is the zero value.
func (e Entry) Default(k Key) any {
	if own, ok := e.Defaults[k.Name]; ok {
		return own
	}
	return k.Default
}

// Settings returns the default settings of the type.
func (e Entry) Settings() Settings {
	s := Settings{Type: e.Type}
	for _, k := range Keys() {
		if value := e.Default(k); e.Has(k.Name) && value != nil {
			s.Set(k.Name, value)
		}
	}
	return s
}

// Find returns the entry of a type, by its canonical name or its alias, and reports whether there is one.
func Find(name string) (e Entry, known bool) {
	for _, e := range Entries() {
		if name == e.Type || name == e.Alias && name != "" {
			return e, true
		}
	}
	return Entry{}, false
}

// Default returns the default settings of a type. The settings of an unknown type have only its name.
func Default(name string) Settings {
	e, known := Find(name)
	if !known {
		return Settings{Type: name}
	}
	return e.Settings()
}

// Types lists the canonical names.
func Types() (names []string) {
	for _, e := range Entries() {
		names = append(names, e.Type)
	}
	return names
}

// Aliases lists the other names.
func Aliases() (names []string) {
	for _, e := range Entries() {
		if e.Alias != "" {
			names = append(names, e.Alias)
		}
	}
	return names
}
