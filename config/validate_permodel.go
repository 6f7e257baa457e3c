package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// perModel checks the condenser with each override. A problem of the condenser itself is not repeated for an override that
// inherits it.
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

// modelPattern checks that a name is a model's, or a prefix of names and a *.
func (v *validator) modelPattern(key, name string) {
	switch {
	case name == "":
		v.add(key, "has an empty name: name the model")
	case name == "*":
		v.add(key, "means every model: set the condenser's own keys")
	case strings.Contains(name[:len(name)-1], "*"):
		v.add(key, "has a * before its end: write the model, or a prefix of its name and one *")
	}
}

// foreignThresholds refuses thresholds that do not belong to the type, in an Override that was built in Go.
func (v *validator) foreignThresholds(key, condenserType string, o Override) {
	mine := Thresholds(condenserType)
	for _, name := range o.keys() {
		v.when(!slices.Contains(mine, name), syntax.Join(key, name), "%s", ForeignKey(condenserType, mine))
	}
}
