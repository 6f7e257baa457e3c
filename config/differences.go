package config

import (
	"reflect"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// Differences are those of two configurations, by names: what the values are is not told.
type Differences struct {
	Keys                    []string // of the top level, but for tenants
	Added, Removed, Changed []string // tenants
}

// Differences says what another configuration would change.
func (c *Config) Differences(now *Config) Differences {
	var d Differences
	before, after := reflect.ValueOf(*c), reflect.ValueOf(*now)
	for i := range before.NumField() {
		key := syntax.KeyOf(before.Type().Field(i))
		if key != "" && key != "tenants" && !reflect.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface()) {
			d.Keys = append(d.Keys, key)
		}
	}
	old, left := byName(c.Tenants), byName(now.Tenants)
	for _, t := range now.Tenants {
		was, known := old[t.Name]
		switch {
		case !known:
			d.Added = append(d.Added, t.Name)
		case !reflect.DeepEqual(was, left[t.Name]):
			d.Changed = append(d.Changed, t.Name)
		}
	}
	for _, t := range c.Tenants {
		if _, stays := left[t.Name]; !stays {
			d.Removed = append(d.Removed, t.Name)
		}
	}
	return d
}

// byName leaves out where tenants stand.
func byName(tenants []Tenant) map[string]Tenant {
	all := map[string]Tenant{}
	for _, t := range tenants {
		t.Key = ""
		all[t.Name] = t
	}
	return all
}
