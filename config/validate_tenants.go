package config

import (
	"cmp"
	"crypto/sha256"
	"time"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

const maxTenantName = 64

// tenants checks that every tenant has a key, and that no two share one.
func (v *validator) tenants() {
	v.when(v.config.Notify && len(v.config.Tenants) > 0,
		"notify", "is for a configuration without tenants: set it in each tenant that needs it, or remove it")
	v.when(v.config.LogContent && len(v.config.Tenants) > 0,
		"log_content", "is for a configuration without tenants: set it in each tenant that needs it, or remove it")
	v.when(v.config.Holdout != 0 && len(v.config.Tenants) > 0,
		"holdout", "is for a configuration without tenants: set it in each tenant that needs it, or remove it")
	v.holdout("holdout", v.config.Holdout, v.config.Observe)
	v.when((v.config.KeepWarm || v.config.KeepWarmUSD != 0) && len(v.config.Tenants) > 0,
		"keep_warm", "is for a configuration without tenants: set it in each tenant that needs it, or remove it")
	v.keepWarm("keep_warm_usd", v.config.KeepWarm, v.config.KeepWarmUSD)
	v.when(v.config.Knowledge != (Knowledge{}) && len(v.config.Tenants) > 0,
		"knowledge", "is for a configuration without tenants: set it in each tenant that needs it, or remove it")
	v.knowledge("knowledge", v.config.Knowledge)
	v.when(v.config.Memory.Set() && len(v.config.Tenants) > 0,
		"memory", "is for a configuration without tenants: set it in each tenant that needs it, or remove it")
	v.memory("memory", &v.config.Memory)
	v.when(v.config.TenantsDir != "" && len(v.config.Tenants) == 0,
		"tenants_dir", "has no tenant, and neither has tenants, so that any key would pass: add a file, or remove tenants_dir")
	names, owners := map[string]string{}, map[[sha256.Size]byte]string{}
	for i, tenant := range v.config.Tenants {
		key := cmp.Or(tenant.Key, syntax.Index("tenants", i))
		v.tenantName(key+".name", tenant.Name)
		if first, taken := names[tenant.Name]; taken {
			v.add(key+".name", "is also the name of %s: give each tenant its own", first)
		} else {
			names[tenant.Name] = key
		}
		v.apiKeys(key+".api_keys", tenant.APIKeys, owners)
		v.holdout(key+".holdout", tenant.Holdout, v.config.Observes(tenant))
		v.keepWarm(key+".keep_warm_usd", tenant.KeepWarm, tenant.KeepWarmUSD)
		v.tenantUpstream(key+".upstream", tenant)
		v.knowledge(key+".knowledge", tenant.Knowledge)
		v.memory(key+".memory", &v.config.Tenants[i].Memory)
		if tenant.Condenser != nil {
			v.condenser(key+".condenser", *tenant.Condenser, 0)
		}
		if tenant.Limits != nil {
			v.tenantLimits(key+".limits", *tenant.Limits)
		}
	}
}

func (v *validator) keepWarm(key string, on bool, usd float64) {
	v.when(usd < 0, key, "must be 0 or more, in USD a day: is %v", usd)
	v.when(usd != 0 && !on, key, "does nothing without keep_warm: set keep_warm: true, or remove it")
}

// mostHeldOut is the largest share of sessions that may be left alone: an experiment needs no more than half.
const mostHeldOut = 0.5

func (v *validator) holdout(key string, share float64, observe bool) {
	v.when(!(share >= 0 && share <= mostHeldOut), key, "is not a share of sessions from 0 to %v", mostHeldOut)
	v.when(share > 0 && observe, key, "has nothing to compare with, since observe leaves all sessions alone: remove one of them")
}

func (v *validator) tenantName(key, name string) {
	switch {
	case name == "":
		v.add(key, "is missing: name the tenant")
	case !syntax.Plain(name) || len(name) > maxTenantName:
		v.add(key, "is not a plain name: use up to %d letters, digits, - and _", maxTenantName)
	}
}

// tenantUpstream checks the fields that a tenant may leave empty to inherit.
func (v *validator) tenantUpstream(key string, tenant Tenant) {
	if tenant.Upstream.BaseURL != "" {
		v.baseURL(key+".base_url", tenant.Upstream.BaseURL)
	}
	v.headerValue(key+".api_key", tenant.Upstream.APIKey)
	v.upstreamTraits(key, tenant.Upstream)
}

func (v *validator) apiKeys(list string, keys []APIKey, owners map[[sha256.Size]byte]string) {
	v.when(len(keys) == 0, list, "is empty: give the tenant at least one key, or no client can use it")
	for i, apiKey := range keys {
		key := syntax.Index(list, i)
		if !v.apiKey(key, apiKey) {
			continue
		}
		digest, _ := apiKey.Digest()
		if owner, taken := owners[digest]; taken {
			v.add(key, "is also the key of %s: a key belongs to one tenant, once", owner)
			continue
		}
		owners[digest] = key
	}
}

func (v *validator) apiKey(key string, k APIKey) bool {
	before := len(v.list)
	_, digestible := k.Digest()
	switch {
	case k.SHA256 != "" && k.Env != "":
		v.add(key, "has both sha256 and env: keep one")
	case k.SHA256 == "" && k.Env == "":
		v.add(key, "has neither sha256 nor env: give the key's SHA-256, or name the variable that holds it")
	case k.SHA256 != "" && !digestible:
		v.add(key+".sha256", "is not 64 hexadecimal digits: write the SHA-256 of the key, never the key itself")
	case k.Env != "" && !syntax.VariableName(k.Env):
		v.add(key+".env", "is not the name of an environment variable: write the name, never the key itself")
	case k.Env != "" && k.Value == "":
		v.add(key+".env", "names the environment variable %s, which is not set or empty: set it", k.Env)
	}
	if k.Env != "" {
		v.headerValue(key+".env", k.Value)
	}
	return len(v.list) == before
}

func (v *validator) tenantLimits(key string, l limit.Tenant) {
	for _, part := range []struct {
		name string
		n    int
	}{{"concurrent", l.Concurrent}, {"requests_per_minute", l.Requests}, {"tokens_per_minute", l.Tokens},
		{"summaries_per_minute", l.Summaries}, {"summary_tokens_per_minute", l.SummaryTokens}} {
		v.when(part.n < 0, key+"."+part.name, "is negative: write a number, or 0 for no limit")
	}
	v.budget(key+".budget", l.Budget)
	v.budget(key+".session_budget", l.SessionBudget)
	v.repeats(key+".repeated_calls", l.Repeats)
	v.when(l.Shared && v.config.Store.Type != StoreRedis, key+".shared",
		"is for replicas that share a store: set store.type to redis, or remove it")
	switch {
	case l.Body < 0:
		v.add(key+".max_body", "is negative: write a size as 4MiB, or 0 for limits.max_body")
	case l.Body > v.config.Limits.MaxBody:
		v.add(key+".max_body", "is above limits.max_body, which holds for every request: lower it, or raise limits.max_body")
	}
}

func (v *validator) repeats(key string, r limit.Repeats) {
	if r.Then == "" {
		v.when(r.After != 0, key+".then", "is missing while after is set: write report or tell, or remove after")
		return
	}
	v.oneOf(key+".then", r.Then, limit.Report, limit.Tell)
	v.when(r.After != 0 && (r.After < limit.MinRepeats || r.After > limit.MaxRepeats), key+".after",
		"is not between %d and %d: write how many times the same call is too often, or leave it out", limit.MinRepeats, limit.MaxRepeats)
}

func (v *validator) knowledge(key string, k Knowledge) {
	v.when(k.MaxTokens < 0, key+".max_tokens", "is negative: write a number of tokens, or leave it out")
	v.when(k.MaxTokens > 0 && k.Folder == "", key+".folder", "is missing while max_tokens is set: name the folder, or remove max_tokens")
}

// Bounds of budgets. Millionths of so many dollars are exact in Redis, too.
const (
	minPeriod = time.Minute
	maxPeriod = 366 * 24 * time.Hour
	maxUSD    = 1e9
)

func (v *validator) budget(key string, b limit.Budget) {
	v.when(!(b.USD >= 0 && b.USD <= maxUSD), key+".usd", "is not an amount from 0 to %.0f: write one, or 0 for no budget in dollars", maxUSD)
	v.when(b.Tokens < 0, key+".tokens", "is negative: write a number, or 0 for no budget in tokens")
	if b.Then != "" {
		v.oneOf(key+".then", b.Then, limit.Refuse, limit.Condense)
	}
	switch {
	case !b.Set():
		v.when(b.Period != 0, key+".period", "is of a budget that has neither usd nor tokens: set one, or remove it")
		v.when(b.Then != "", key+".then", "is of a budget that has neither usd nor tokens: set one, or remove it")
	case b.Period < minPeriod || b.Period > maxPeriod:
		v.add(key+".period", "is not between 1m and 8784h: say for how long the budget is, as 24h")
	}
}
