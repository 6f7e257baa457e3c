package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

const maxTenantName = 64

// tenants checks that every tenant has a key, and that no two share one.
func (v *validator) tenants() {
	c := v.config
	for _, own := range []struct {
		key string
		set bool
	}{
		{"notify", c.Notify}, {"log_content", c.LogContent}, {"holdout", c.Holdout != 0}, {"keep_warm", c.KeepWarm || c.KeepWarmUSD != 0},
		{"knowledge", c.Knowledge != (Knowledge{})}, {"memory", c.Memory.Set()},
	} {
		v.when(own.set && len(c.Tenants) > 0,
			own.key, "is for a configuration without tenants: set it in each tenant that needs it, or remove it")
	}
	v.traits("", c.anyone())
	v.when(c.TenantsDir != "" && len(c.Tenants) == 0,
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
		v.traits(key+".", tenant)
		v.upstream(key+".upstream", tenant.Upstream)
		if tenant.Condenser != nil {
			v.condenser(key+".condenser", *tenant.Condenser, 0)
		}
		if tenant.Limits != nil {
			v.tenantLimits(key+".limits", *tenant.Limits)
		}
	}
}

// mostHeldOut is the largest share of sessions that may be left alone: an experiment needs no more than half.
const mostHeldOut = 0.5

// traits checks what a configuration without tenants says itself.
func (v *validator) traits(in string, t Tenant) {
	v.when(!(t.Holdout >= 0 && t.Holdout <= mostHeldOut), in+"holdout", "is not a share of sessions from 0 to %v", mostHeldOut)
	v.when(t.Holdout > 0 && v.config.Observes(t),
		in+"holdout", "has nothing to compare with, since observe leaves all sessions alone: remove one of them")
	v.when(t.KeepWarmUSD < 0, in+"keep_warm_usd", "must be 0 or more, in USD a day: is %v", t.KeepWarmUSD)
	v.when(t.KeepWarmUSD != 0 && !t.KeepWarm, in+"keep_warm_usd", "does nothing without keep_warm: set keep_warm: true, or remove it")
	k := t.Knowledge
	v.when(k.MaxTokens < 0, in+"knowledge.max_tokens", "is negative: write a number of tokens, or leave it out")
	v.when(k.MaxTokens > 0 && k.Folder == "",
		in+"knowledge.folder", "is missing while max_tokens is set: name the folder, or remove max_tokens")
	v.memory(in+"memory", &t.Memory)
}

func (v *validator) tenantName(key, name string) {
	switch {
	case name == "":
		v.add(key, "is missing: name the tenant")
	case !syntax.Plain(name) || len(name) > maxTenantName:
		v.add(key, "is not a plain name: use up to %d letters, digits, - and _", maxTenantName)
	}
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
	v.when(l.Body < 0, key+".max_body", "is negative: write a size as 4MiB, or 0 for limits.max_body")
	v.when(l.Body >= 0 && l.Body > v.config.Limits.MaxBody,
		key+".max_body", "is above limits.max_body, which holds for every request: lower it, or raise limits.max_body")
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

// Bounds of budgets. Millionths of so many dollars are exact in Redis, too.
const (
	minPeriod = time.Minute
	maxPeriod = 366 * 24 * time.Hour
	maxUSD    = 1e9
)

func (v *validator) budget(key string, b limit.Budget) {
	v.when(!(b.USD >= 0 && b.USD <= maxUSD), key+".usd", "is not an amount from 0 to %.0f: write one, or 0 for no budget in dollars", maxUSD)
	v.when(b.Tokens < 0, key+".tokens", "is negative: write a number, or 0 for no budget in tokens")
	v.optional(key+".then", b.Then, limit.Refuse, limit.Condense)
	switch {
	case !b.Set():
		v.when(b.Period != 0, key+".period", "is of a budget that has neither usd nor tokens: set one, or remove it")
		v.when(b.Then != "", key+".then", "is of a budget that has neither usd nor tokens: set one, or remove it")
	case b.Period < minPeriod || b.Period > maxPeriod:
		v.add(key+".period", "is not between 1m and 8784h: say for how long the budget is, as 24h")
	}
}

// memory checks where findings go.
func (v *validator) memory(key string, m *Memory) {
	var sinks []string
	for name, set := range map[string]bool{"file": m.File != "", "webhook": m.Webhook.URL != "", "mcp": m.MCP.URL != "" || len(m.MCP.Command) > 0} {
		if set {
			sinks = append(sinks, name)
		}
	}
	slices.Sort(sinks)
	v.when(len(sinks) > 1, key, "has %s: keep one of them", strings.Join(sinks, " and "))
	v.when(len(sinks) == 0 && (m.MaxPending != 0 || m.MaxAge != 0), key, "goes nowhere: set file, webhook.url, mcp.url or mcp.command, or remove it")
	v.when(m.MaxPending < 0, key+".max_pending", "is negative: write a number, or leave it out")
	v.notNegative(key+".max_age", m.MaxAge)
	v.webhook(key+".webhook", m.Webhook)
	v.mcp(key+".mcp", &m.MCP)
}

func (v *validator) webhook(key string, w Webhook) {
	v.when(w.Secret != "" && w.URL == "", key+".url", "is missing while secret is set: add it, or remove that")
	v.baseURL(key+".url", w.URL.Reveal())
	if encoded, is := strings.CutPrefix(w.Secret.Reveal(), "whsec_"); is {
		_, err := base64.StdEncoding.DecodeString(encoded)
		v.when(err != nil, key+".secret", "begins with whsec_ and is not base64 behind that: copy all of it")
	}
}

func (v *validator) mcp(key string, m *MCP) {
	v.headerValue(key+".api_key", m.APIKey)
	v.when(slices.Contains(m.Command, ""), key+".command", "holds an empty text: write it as [npx, -y, \"@modelcontextprotocol/server-memory\"]")
	v.when(m.APIKey != "" && m.URL == "", key+".api_key", "goes nowhere without url: add that, or remove it")
	v.when(len(m.Env) > 0 && len(m.Command) == 0, key+".env", "is for a command: add that, or remove it")
	switch {
	case m.URL != "" && len(m.Command) > 0:
		v.add(key+".command", "is there, and so is url: keep one of them")
	case m.URL == "" && len(m.Command) == 0:
		v.when(m.Tool != "" || m.Arguments != "", key+".url", "is missing, and so is command: name the server to call, or the program")
	default:
		v.baseURL(key+".url", m.URL)
	}
	if m.Arguments != "" {
		var object map[string]any
		v.when(json.Unmarshal([]byte(m.Arguments), &object) != nil, key+".arguments", "is no object of JSON: write it as '{\"text\": \"{findings}\"}'")
		v.when(m.Tool == "", key+".tool", "is missing while arguments is set: name the tool that takes them")
	}
}
