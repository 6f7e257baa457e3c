package config

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/known/provider"
)

// General stands for the upstream of requests to no provider in particular: that of Upstream.BaseURL, or without one OpenAI's.
const General provider.Name = ""

// UpstreamFor returns the upstream of a tenant's requests to a provider. Its sections of providers are empty.
//
// The base URL is the first of these that is set: the provider's in the tenant's upstream, the tenant's for all protocols, the same two of the
// configuration, the provider's own address. A key is sent only to the address that it is configured for. An address and a key are configured
// together if they stand in the same section; a key without an address is for the one that the section inherits, and in upstream itself for
// OpenAI's if there is none.
func (c *Config) UpstreamFor(t Tenant, p provider.Name) Upstream {
	levels := []Upstream{t.Upstream, c.Upstream}
	base := baseURL(levels, p)
	up := Upstream{
		BaseURL: base, APIKey: keyFor(levels, p, base), Timeout: cmp.Or(t.Upstream.Timeout, c.Upstream.Timeout),
		AlternateRoles: t.Upstream.AlternateRoles, Compaction: t.Upstream.Compaction,
	}
	if t.Upstream.BaseURL == "" {
		up.AlternateRoles = up.AlternateRoles || c.Upstream.AlternateRoles
		up.Compaction = cmp.Or(up.Compaction, c.Upstream.Compaction)
	}
	return up
}

// UpstreamsFor returns all upstreams of a tenant's requests, each once, the general one first.
func (c *Config) UpstreamsFor(t Tenant) []Upstream {
	all := []Upstream{c.UpstreamFor(t, General)}
	for _, p := range provider.Names() {
		if up := c.UpstreamFor(t, p); !slices.Contains(all, up) {
			all = append(all, up)
		}
	}
	return all
}

// LLMFor returns the condenser model of that name for a tenant's requests to one of its upstreams, and reports whether the name is known. The
// empty name stands for the request's own model at its upstream; Model is then empty. Timeout is always set.
//
// A model with a base URL has the key of the upstream with the same address unless it has one of its own. A model without a base URL is called
// at the general upstream if there is a key for that, its own, the upstream's or OpenAI's if the address is the same, and otherwise where the
// request goes. Its own key is for the configuration's general upstream, and is not sent to a tenant's.
func (c *Config) LLMFor(name string, t Tenant, at Upstream) (LLM, bool) {
	llm, known := c.LLMs[name]
	if !known && name != "" {
		return LLM{}, false
	}
	llm.Timeout = cmp.Or(llm.Timeout, c.Limits.SummariserTimeout)
	general := c.UpstreamFor(t, General)
	switch {
	case name == "":
		llm.BaseURL, llm.APIKey = at.BaseURL, at.APIKey
	case llm.BaseURL == "":
		if general.BaseURL != c.UpstreamFor(Tenant{}, General).BaseURL {
			llm.APIKey = ""
		}
		llm.BaseURL, llm.APIKey = general.BaseURL, cmp.Or(llm.APIKey, general.APIKey, c.openAIKeyFor(t, general.BaseURL))
		if llm.APIKey == "" {
			llm.BaseURL, llm.APIKey = at.BaseURL, at.APIKey
		}
	default:
		llm.BaseURL = trimSlash(llm.BaseURL)
		for _, up := range append([]Upstream{at}, c.UpstreamsFor(t)...) {
			if llm.APIKey == "" && up.BaseURL == llm.BaseURL {
				llm.APIKey = up.APIKey
			}
		}
	}
	return llm, true
}

// openAIKeyFor returns the key of the section of OpenAI, if that leads to an address.
func (c *Config) openAIKeyFor(t Tenant, address string) Secret {
	if openAI := c.UpstreamFor(t, provider.OpenAI); openAI.BaseURL == address {
		return openAI.APIKey
	}
	return ""
}

// provider returns the section of a provider.
func (u *Upstream) provider(p provider.Name) *Provider {
	switch p {
	case provider.OpenAI:
		return &u.OpenAI
	case provider.Anthropic:
		return &u.Anthropic
	case provider.ChatGPT:
		return &u.ChatGPT
	case provider.Gemini:
		return &u.Gemini
	}
	return &Provider{}
}

// baseURL returns the address of a provider according to sections of which the first that has one counts.
func baseURL(levels []Upstream, p provider.Name) string {
	for _, up := range levels {
		if url := cmp.Or(up.provider(p).BaseURL, up.BaseURL); url != "" {
			return trimSlash(url)
		}
	}
	if p == General {
		return baseURL(levels, provider.OpenAI)
	}
	return p.BaseURL()
}

// keyFor returns the key for a provider at an address. A key counts only if its section, with what that inherits, leads to this address.
func keyFor(levels []Upstream, p provider.Name, base string) Secret {
	for i, up := range levels {
		if key := up.provider(p).APIKey; key != "" && baseURL(levels[i:], p) == base {
			return key
		}
		if up.APIKey != "" && baseURL(levels[i:], General) == base {
			return up.APIKey
		}
	}
	return ""
}

func trimSlash(url string) string { return strings.TrimRight(url, "/") }
