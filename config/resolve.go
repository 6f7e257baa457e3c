package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"reflect"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

// IsOpen reports whether no tenants are configured, not even refused ones, so that any key passes.
func (c *Config) IsOpen() bool { return len(c.Tenants)+len(c.Refused) == 0 }

// EveryTenant returns the tenants, or the default tenant if none are configured.
func (c *Config) EveryTenant() []Tenant {
	if !c.IsOpen() {
		return c.Tenants
	}
	return []Tenant{c.defaultTenant()}
}

func (c *Config) defaultTenant() Tenant {
	return Tenant{
		Name: DefaultTenant, Notify: c.Notify, LogContent: c.LogContent, Holdout: c.Holdout,
		Knowledge: c.Knowledge, Memory: c.Memory,
	}
}

// CondenserFor returns the tenant's condenser, or Config.Condenser if it has none.
func (c *Config) CondenserFor(t Tenant) Condenser {
	return *cmp.Or(t.Condenser, &c.Condenser)
}

// Observes reports whether a tenant's requests are only observed, according to Tenant.Observe or, if that is nil, Config.Observe.
func (c *Config) Observes(t Tenant) bool {
	return *cmp.Or(t.Observe, &c.Observe)
}

// Digest returns the SHA-256 of the key. It returns false if SHA256 is malformed, or the variable that Env names was empty or not set.
func (k APIKey) Digest() (digest [sha256.Size]byte, ok bool) {
	if k.SHA256 == "" {
		return sha256.Sum256([]byte(k.Value)), k.Value != ""
	}
	raw, err := hex.DecodeString(k.SHA256)
	if err != nil || len(raw) != sha256.Size {
		return digest, false
	}
	return [sha256.Size]byte(raw), true
}

// LimitsFor returns the tenant's limits, or Limits.Tenant if it has none. The two are not merged.
func (c *Config) LimitsFor(t Tenant) limit.Tenant {
	return *cmp.Or(t.Limits, &c.Limits.Tenant)
}

// ModelFor returns the limits and prices of a request's model from Config.Models, or else from the built-in table, and the name under which
// it was found. For an unknown model it returns model.Fallback and an empty name.
func (c *Config) ModelFor(name string) (info model.Info, known string) {
	return model.Table{Configured: c.Models}.Lookup(name)
}

// Hash returns a hash of the configuration without its secrets, by which configurations are compared.
func (c *Config) Hash() uint32 {
	text, _ := json.Marshal(c) // cannot fail: it is plain data
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint32(sum[:])
}

// Differences lists what differs between two configurations: names only, no values.
type Differences struct {
	Keys                    []string // of the top level except tenants, in the order of Config
	Added, Removed, Changed []string // tenants
}

// Differences returns what changes from c to now.
func (c *Config) Differences(now *Config) Differences {
	var d Differences
	after := reflect.ValueOf(*now)
	for f, before := range reflect.ValueOf(*c).Fields() {
		key := syntax.KeyOf(f)
		if key != "" && key != "tenants" && !reflect.DeepEqual(before.Interface(), after.FieldByIndex(f.Index).Interface()) {
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

// byName returns the tenants by name, without their keys, which change when a tenant is moved.
func byName(tenants []Tenant) map[string]Tenant {
	all := map[string]Tenant{}
	for _, t := range tenants {
		t.Key, t.Kept = "", false
		all[t.Name] = t
	}
	return all
}
