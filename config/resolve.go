package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/model"
)

// EveryTenant returns the tenants, or the one that there is where none are configured.
func (c *Config) EveryTenant() []Tenant {
	if len(c.Tenants) > 0 {
		return c.Tenants
	}
	return []Tenant{c.anyone()}
}

func (c *Config) anyone() Tenant {
	return Tenant{
		Name: DefaultTenant, Notify: c.Notify, LogContent: c.LogContent, Holdout: c.Holdout, Knowledge: c.Knowledge, Memory: c.Memory,
		KeepWarm: c.KeepWarm, KeepWarmUSD: c.KeepWarmUSD,
	}
}

// UpstreamFor returns where a tenant's requests go: its own fields, and the configuration's for those left empty.
// The API key is inherited only together with the base URL, so that a key is never sent to another server.
func (c *Config) UpstreamFor(t Tenant) Upstream {
	up := t.Upstream
	if up.BaseURL == "" {
		up.AlternateRoles = up.AlternateRoles || c.Upstream.AlternateRoles
		up.Compaction = cmp.Or(up.Compaction, c.Upstream.Compaction)
	}
	up.BaseURL, up.APIKey = inherit(t.Upstream.BaseURL, t.Upstream.APIKey, c.Upstream)
	if up.Timeout == 0 {
		up.Timeout = c.Upstream.Timeout
	}
	return up
}

// LLMFor returns the condenser model of that name for requests to up, and whether the name is known. The empty name
// means the request's own model at up: the answer then has an empty Model. An LLM without a base URL calls up; its key
// is inherited only together with the base URL, and its own is for the configuration's upstream, not for that of a tenant. Timeout is always
// set.
func (c *Config) LLMFor(name string, up Upstream) (LLM, bool) {
	llm, known := c.LLMs[name]
	if !known && name != "" {
		return LLM{}, false
	}
	if llm.BaseURL == "" && trimSlash(up.BaseURL) != trimSlash(c.Upstream.BaseURL) {
		llm.APIKey = ""
	}
	llm.BaseURL, llm.APIKey = inherit(llm.BaseURL, llm.APIKey, up)
	if llm.Timeout == 0 {
		llm.Timeout = c.Limits.SummariserTimeout
	}
	return llm, true
}

// CondenserFor returns the tenant's condenser, or the default one.
func (c *Config) CondenserFor(t Tenant) Condenser {
	if t.Condenser != nil {
		return *t.Condenser
	}
	return c.Condenser
}

// Observes reports whether a tenant only observes: by its own word, or else by that for all.
func (c *Config) Observes(t Tenant) bool {
	if t.Observe != nil {
		return *t.Observe
	}
	return c.Observe
}

// Digest returns the SHA-256 of the key, and false when the key is neither a valid digest nor a set variable.
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

func inherit(baseURL string, key Secret, from Upstream) (string, Secret) {
	own, parent := trimSlash(baseURL), trimSlash(from.BaseURL)
	if own == "" {
		own = parent
	}
	if key == "" && own == parent {
		key = from.APIKey
	}
	return own, key
}

func trimSlash(url string) string { return strings.TrimRight(url, "/") }

// LimitsFor returns the tenant's own limits, all of them, or the default ones.
func (c *Config) LimitsFor(t Tenant) limit.Tenant {
	if t.Limits != nil {
		return *t.Limits
	}
	return c.Limits.Tenant
}

// ModelFor returns what a request's model holds and costs, and whether that is known: from Config.Models, else from the
// built-in table, else model.Fallback and false.
func (c *Config) ModelFor(name string) (model.Info, bool) {
	info, known := c.ModelNamed(name)
	return info, known != ""
}

// ModelNamed is ModelFor with the name under which the model was found, see model.Table.
func (c *Config) ModelNamed(name string) (info model.Info, known string) {
	return model.Table{Configured: c.Models}.Lookup(name)
}

// Hash tells configurations apart. Secrets do not count.
func (c *Config) Hash() uint32 {
	text, _ := json.Marshal(c) // cannot fail: it is plain data
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint32(sum[:])
}

// Differences are those of two configurations, by names: what the values are is not told.
type Differences struct {
	Keys                    []string // of the top level, in its order, but for tenants
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
