package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// Condenser configures one condensation strategy. The catalogue says which types there are, and which keys they have. Load replaces an alias in
// Type by the canonical name.
type Condenser = catalogue.Settings

// Override is an entry of a condenser's per_model.
type Override = catalogue.Override

// MeantType returns the canonical type that a name stands for: a type, its alias or OpenHands' class in any spelling, or nearly one of them. It
// is "" if there is none.
func MeantType(name string) string {
	name = strings.TrimSuffix(strings.TrimSuffix(name, "Settings"), "Config")
	names := append(catalogue.Types(), catalogue.Aliases()...)
	for _, given := range []string{name, strings.Replace(name, "Condenser", "", 1)} {
		if e, known := catalogue.Find(syntax.Similar(given, names)); known {
			return e.Type
		}
	}
	return ""
}

// ForeignKey returns the message about a key that does not belong to the type. own are the keys that do.
func ForeignKey(condenserType string, own []string) string {
	advice := "remove it, this type has no keys"
	if len(own) > 0 {
		advice = "remove it, or use " + strings.Join(own, ", ")
	}
	return fmt.Sprintf("does not belong to type %q: %s", condenserType, advice)
}

// setKeys lists the keys of a struct that have a value.
func setKeys(section any) (keys []string) {
	for f, value := range reflect.ValueOf(section).Fields() {
		if !value.IsZero() {
			keys = append(keys, syntax.KeyOf(f))
		}
	}
	return keys
}
