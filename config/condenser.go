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
