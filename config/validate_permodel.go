package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// perModel checks what each override makes of a condenser. What is wrong with the condenser itself is not said again of
// an override that inherits it.
func (v *validator) perModel(key string, c Condenser, own Problems) {
	own = slices.Clone(own)
	for _, name := range slices.Sorted(maps.Keys(c.PerModel)) {
		override, path := c.PerModel[name], syntax.Join(key+".per_model", name)
		v.modelPattern(path, name)
		v.foreignThresholds(path, c.Type, override)
		before := len(v.list)
		v.sizes(path, c.With(override))
		found := slices.DeleteFunc(v.list[before:], func(p Problem) bool {
			name := strings.TrimPrefix(p.Key, path+".")
			return !slices.Contains(override.keys(), name) && slices.ContainsFunc(own, func(first Problem) bool {
				return first.Key == syntax.Join(key, name) && first.Message == p.Message
			})
		})
		v.list = v.list[:before+len(found)]
	}
}

// modelPattern checks that a name is a model's, or how models' names begin and a *.
func (v *validator) modelPattern(key, name string) {
	switch {
	case name == "":
		v.add(key, "has an empty name: name the model")
	case name == "*":
		v.add(key, "means every model: set the condenser's own keys")
	case strings.Contains(name[:len(name)-1], "*"):
		v.add(key, "has a * before its end: name the model, or how its name begins and one * after that")
	}
}

// foreignThresholds refuses what was set in an Override that was not loaded, but built.
func (v *validator) foreignThresholds(key, condenserType string, o Override) {
	mine := Thresholds(condenserType)
	for _, name := range o.keys() {
		if !slices.Contains(mine, name) {
			v.add(syntax.Join(key, name), "%s", ForeignKey(condenserType, mine))
		}
	}
}
