package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
	"github.com/dewpoint-proxy/dewpoint/internal/hosts"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

const maxTenantName = 64

// tenants checks the tenants, that each has a key, and that no two share a name or key.
func (v *validator) tenants() {
	c := v.config
	v.onlyWithoutTenants("notify", c.Notify)
	v.onlyWithoutTenants("log_content", c.LogContent)
	v.onlyWithoutTenants("holdout", c.Holdout != Holdout{})
	v.onlyWithoutTenants("knowledge", c.Knowledge.Set())
	v.onlyWithoutTenants("memory", c.Memory.Set())
	v.traits("", c.defaultTenant())
	v.when(c.TenantsDir != "" && c.IsOpen(),
		"tenants_dir", "has no tenants, and neither has tenants, so that any key would pass: add a file, or remove tenants_dir")
	for i, text := range c.TenantsHosts {
		_, valid := hosts.Parse(text)
		v.when(!valid, syntax.Index("tenants_hosts", i),
			"is not a host: write it as llm.example.com, *.example.com, 10.1.2.3 or 10.0.0.0/8, with a port as in llm.example.com:8000 if only that one is meant")
	}
	allowed := hosts.NewList(c.TenantsHosts)
	names, keys := map[string]*claim{}, map[[sha256.Size]byte]*claim{}
	for i, tenant := range c.Tenants {
		key := tenantKey(i, tenant)
		v.tenantName(key+".name", tenant.Name)
		names[tenant.Name] = v.claim(names[tenant.Name], claim{tenant: tenant, key: key + ".name", owner: key},
			"is also the name of %s: give each tenant its own")
		v.apiKeys(key+".api_keys", tenant, keys)
		v.traits(key+".", tenant)
		v.upstream(key+".upstream", tenant.Upstream)
		v.when(tenant.Confined && tenant.Gateway, key+".gateway",
			"lets its keys act for other tenants, which teams' files may not: remove it, or let the operator add the tenant to the configuration")
		if tenant.Confined {
			v.confined(tenant.Addresses(key+"."), allowed)
		}
		if tenant.Condenser != nil {
			v.condenser(key+".condenser", *tenant.Condenser, 0)
		}
		if tenant.Limits != nil {
			v.tenantLimits(key+".limits", *tenant.Limits)
		}
	}
}

// tenantKey returns the key of the tenant at index i of Config.Tenants.
func tenantKey(i int, t Tenant) string { return cmp.Or(t.Key, syntax.Index("tenants", i)) }

// confined refuses addresses whose host the operator does not allow. The IP addresses that the host resolves to are checked when it is
// dialled.
func (v *validator) confined(addresses []Address, allowed hosts.List) {
	for _, a := range addresses {
		u, err := url.Parse(a.URL)
		if err != nil || u.Hostname() == "" || linkLocal(u.Hostname()) {
			continue // reported elsewhere
		}
		host, port := hosts.Of(u)
		v.when(!allowed.Allows(host, port), a.Key,
			"names a host that teams may not use: remove it, or let the operator add the host to tenants_hosts in the configuration")
	}
}

// onlyWithoutTenants refuses a key of the default tenant if tenants are configured.
func (v *validator) onlyWithoutTenants(key string, set bool) {
	v.when(set && !v.config.IsOpen(),
		key, "is for a configuration without tenants: set it in each tenant that needs it, or remove it")
}

// maxHoldout is the largest share of sessions that may be held out: an experiment needs no more than half.
const maxHoldout = 0.5

// traits checks those keys of a tenant that are also top-level keys, for the default tenant. section is the tenant's key followed by a dot,
// empty for the top level.
func (v *validator) traits(section string, t Tenant) {
	v.holdout(section+"holdout", t)
	v.when(section == "" && t.LogContent && (!v.config.Log.Requests || v.config.Log.Level == "warn" || v.config.Log.Level == "error"),
		section+"log_content", "does nothing without log.requests at level info: set log.requests: true and log.level: info, or remove it")
	k := t.Knowledge
	v.when(k.MaxTokens < 0, section+"knowledge.max_tokens", "is negative: write a number of tokens, or leave it out")
	v.when(k.MaxTokens > 0 && k.Folder == "" && len(k.Also) == 0,
		section+"knowledge.folder", "is missing while max_tokens is set: name the folder, or remove max_tokens")
	for i, set := range k.Also {
		v.knowledgeSet(fmt.Sprintf("%sknowledge.also[%d]", section, i), set)
	}
	v.memory(section+"memory", &t.Memory)
}

func (v *validator) holdout(key string, t Tenant) {
	h := t.Holdout
	v.when(!(h.Share >= 0 && h.Share <= maxHoldout), key, "is not a share of sessions from 0 to %v: write 0.1 for a tenth, or 0 for none", maxHoldout)
	v.when(h.Share > 0 && v.config.Observes(t), key, "does not work together with observe, under which no session is condensed: remove one of them")
	if h.Condenser != nil {
		v.when(h.Share == 0, key+".share", "is missing or 0, so that condenser is never used: write the share of sessions that it condenses, such as 0.1")
		v.condenser(key+".condenser", *h.Condenser, 0)
	}
}

func (v *validator) knowledgeSet(key string, s KnowledgeSet) {
	v.when(s.Folder == "", key+".folder", "is missing: name the folder, or remove the entry")
	v.when(s.Header == "" && s.Sessions == "",
		key, "has neither header nor sessions: say for which requests it is, or name its folder as knowledge.folder")
	name, value := s.HeaderValue()
	v.when(s.Header != "" && (name == "" || value == "" || strings.ContainsAny(name, " \t")),
		key+".header", `is not a header with its value: write it as "X-Project: web"`)
	_, err := path.Match(s.Sessions, "")
	v.when(err != nil, key+".sessions", `is not a pattern: write it as "web-*", and a [ that stands for itself as \\[`)
}

func (v *validator) tenantName(key, name string) {
	switch {
	case name == "":
		v.add(key, "is missing: name the tenant")
	case !validTenantName(name):
		v.add(key, "is not a plain name: use up to %d letters, digits, - and _", maxTenantName)
	}
}

func validTenantName(name string) bool { return syntax.Plain(name) && len(name) <= maxTenantName }

// claim is a name or key that a tenant has and no other one may have.
type claim struct {
	tenant   Tenant
	key      string // of the configuration
	owner    string // how another tenant's problem calls it
	disputed bool   // its own problem was reported
}

// claim adds a problem if an earlier tenant has what second claims, and returns the one that keeps it. The file of a team cannot take
// anything away from the operator's own tenants, or from the last good version of a file. If two files claim the same, both have the problem,
// because nothing says whose it is: a running process goes on with the last good versions of both. message has a place for the other owner.
func (v *validator) claim(first *claim, second claim, message string) *claim {
	if first == nil {
		return &second
	}
	v.add(second.key, message, first.owner)
	a, b := first.tenant, second.tenant
	if a.InFile() && b.InFile() && !a.Kept && !b.Kept && a.Key != b.Key && !first.disputed {
		first.disputed = true
		v.add(first.key, message, second.owner)
	}
	return first
}

func (v *validator) apiKeys(list string, tenant Tenant, claims map[[sha256.Size]byte]*claim) {
	v.when(len(tenant.APIKeys) == 0, list, "is empty: give the tenant at least one key, or no client can use it")
	for i, apiKey := range tenant.APIKeys {
		key := syntax.Index(list, i)
		if !v.apiKey(key, apiKey) {
			continue
		}
		digest, _ := apiKey.Digest()
		claims[digest] = v.claim(claims[digest], claim{tenant: tenant, key: key, owner: key}, "is also the key of %s: write each key once, for one tenant")
	}
}

func (v *validator) apiKey(key string, k APIKey) bool {
	before := len(v.list)
	_, valid := k.Digest()
	switch {
	case k.SHA256 != "" && k.Env != "":
		v.add(key, "has both sha256 and env: keep one")
	case k.SHA256 == "" && k.Env == "":
		v.add(key, "has neither sha256 nor env: give the key's SHA-256, or name the variable that holds it")
	case k.SHA256 != "" && !valid:
		v.add(key+".sha256", "is not 64 hexadecimal digits: write the SHA-256 of the key, never the key itself")
	case k.Env != "" && !syntax.VariableName(k.Env):
		v.add(key+".env", "is not the name of an environment variable: write the name, never the key itself")
	case k.Env != "" && k.Value == "":
		v.add(key+".env", "names the environment variable %s, which is empty or not set: set it", k.Env)
	}
	if k.Env != "" {
		v.headerValue(key+".env", k.Value)
	}
	return len(v.list) == before
}

func (v *validator) tenantLimits(key string, l limit.Tenant) {
	bound := func(name string, n int) {
		v.when(n < 0, key+"."+name, "is negative: write a number, or 0 for no limit")
	}
	bound("concurrent", l.Concurrent)
	bound("requests_per_minute", l.Requests)
	bound("tokens_per_minute", l.Tokens)
	bound("summaries_per_minute", l.Summaries)
	bound("summary_tokens_per_minute", l.SummaryTokens)
	v.budget(key+".budget", l.Budget)
	v.budget(key+".session_budget", l.SessionBudget)
	v.when(l.Shared && v.config.Store.Type != StoreRedis, key+".shared",
		"needs a store that replicas share: set store.type to redis, or remove it")
	v.when(l.Body < 0, key+".max_body", "is negative: write a size such as 4MiB, or 0 for limits.max_body")
	v.when(v.config.Limits.MaxBody > 0 && l.Body > v.config.Limits.MaxBody,
		key+".max_body", "is above limits.max_body, which applies to every request: lower it, or raise limits.max_body")
}

// Bounds of budgets. maxUSD, in millionths of a dollar, is still an exact number in Redis.
const (
	minPeriod = limit.Period(time.Minute)
	maxPeriod = 366 * limit.Day
	maxUSD    = 1e9
)

func (v *validator) budget(key string, b limit.Budget) {
	v.when(!(b.USD >= 0 && b.USD <= maxUSD), key+".usd", "is not an amount from 0 to %.0f: write one, or 0 for no budget in dollars", maxUSD)
	v.when(b.Tokens < 0, key+".tokens", "is negative: write a number, or 0 for no budget in tokens")
	v.optional(key+".then", b.Then, limit.Refuse, limit.Condense)
	switch {
	case b.USD == 0 && b.Tokens == 0:
		v.when(b.Period != 0, key+".period", "has no use without usd or tokens: set one of them, or remove it")
		v.when(b.Then != "", key+".then", "has no use without usd or tokens: set one of them, or remove it")
	case (b.Set() || b.Period != 0) && b.Period != limit.Month && (b.Period < minPeriod || b.Period > maxPeriod):
		v.add(key+".period", "is not between 1m and 366d: write the length of the budget's period, such as day, month or 30d")
	}
}

// memory checks the destination of findings.
func (v *validator) memory(key string, m *Memory) {
	var sinks []string
	if m.File != "" {
		sinks = append(sinks, "file")
	}
	if m.MCP.URL != "" {
		sinks = append(sinks, "mcp")
	}
	if m.Webhook.URL != "" {
		sinks = append(sinks, "webhook")
	}
	v.when(len(sinks) > 1, key, "has %s: keep one of them", strings.Join(sinks, " and "))
	v.when(len(sinks) == 0 && (m.MaxPending != 0 || m.MaxAge != 0), key, "has no destination: set file, webhook.url or mcp.url, or remove it")
	v.when(m.MaxPending < 0, key+".max_pending", "is negative: write a number, or leave it out")
	v.notNegative(key+".max_age", m.MaxAge)
	v.webhook(key+".webhook", m.Webhook)
	v.mcp(key+".mcp", &m.MCP)
}

func (v *validator) webhook(key string, w Webhook) {
	v.when(w.Secret != "" && w.URL == "", key+".url", "is missing while secret is set: set it, or remove secret")
	v.url(key+".url", w.URL.Reveal(), "https://example.com/findings", "set secret to sign the requests instead")
	if encoded, is := strings.CutPrefix(w.Secret.Reveal(), "whsec_"); is {
		_, err := base64.StdEncoding.DecodeString(encoded)
		v.when(err != nil, key+".secret", "begins with whsec_, but the rest is not base64: copy all of it")
	}
}

func (v *validator) mcp(key string, m *MCP) {
	v.headerValue(key+".api_key", m.APIKey)
	v.when(m.APIKey != "" && m.URL == "", key+".api_key", "has no use without url: set url, or remove it")
	v.when(m.URL == "" && (m.Tool != "" || m.Arguments != ""), key+".url", "is missing while tool or arguments is set: set it, or remove them")
	v.url(key+".url", m.URL, "http://127.0.0.1:8000/mcp", "set api_key")
	if m.Arguments != "" {
		var object map[string]any
		v.when(json.Unmarshal([]byte(m.Arguments), &object) != nil, key+".arguments", "is not a JSON object: write it as '{\"text\": \"{findings}\"}'")
		v.when(m.Tool == "", key+".tool", "is missing while arguments is set: name the tool that takes them")
	}
}
