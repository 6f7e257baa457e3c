package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// Address is a URL in the configuration and the key that it has there. It may hold a secret.
type Address struct{ Key, URL string }

// Addresses returns the addresses that the operator configures: all but those of confined tenants.
func (c *Config) Addresses() []Address {
	all := Tenant{Upstream: c.Upstream, Condenser: &c.Condenser, Memory: c.Memory}.Addresses("")
	for _, name := range slices.Sorted(maps.Keys(c.LLMs)) {
		all = append(all, Address{"llms." + name + ".base_url", c.LLMs[name].BaseURL})
	}
	for _, t := range c.Tenants {
		if !t.Confined {
			all = append(all, t.Addresses("")...)
		}
	}
	for _, up := range c.UpstreamsFor(Tenant{}) {
		if !slices.ContainsFunc(all, func(a Address) bool { return trimSlash(a.URL) == up.BaseURL }) {
			all = append(all, Address{"upstream", up.BaseURL}) // a provider's own
		}
	}
	return slices.DeleteFunc(all, func(a Address) bool { return a.URL == "" })
}

// Addresses returns the addresses that a tenant names itself. section is what their keys begin with, such as "tenants.a.".
func (t Tenant) Addresses(section string) []Address {
	all := []Address{
		{section + "upstream.base_url", t.Upstream.BaseURL},
		{section + "upstream.openai.base_url", t.Upstream.OpenAI.BaseURL},
		{section + "upstream.anthropic.base_url", t.Upstream.Anthropic.BaseURL},
		{section + "upstream.chatgpt.base_url", t.Upstream.ChatGPT.BaseURL},
		{section + "upstream.gemini.base_url", t.Upstream.Gemini.BaseURL},
		{section + "memory.webhook.url", t.Memory.Webhook.URL.Reveal()},
		{section + "memory.mcp.url", t.Memory.MCP.URL},
	}
	if t.Condenser != nil {
		all = append(all, condenserAddresses(section+"condenser", *t.Condenser)...)
	}
	return slices.DeleteFunc(all, func(a Address) bool { return a.URL == "" })
}

func condenserAddresses(key string, c Condenser) []Address {
	all := []Address{{key + ".url", c.URL}}
	for i, stage := range c.Condensers {
		all = append(all, condenserAddresses(syntax.Index(key+".condensers", i), stage)...)
	}
	return all
}

// HasTeamsFiles reports whether TenantsDir is set and its files are not trusted.
func (c *Config) HasTeamsFiles() bool { return c.TenantsDir != "" && !c.TenantsTrusted }

// InFile reports whether the tenant has its own file in TenantsDir.
func (t Tenant) InFile() bool { return strings.HasPrefix(t.Key, "tenants_dir") }
