package proxy

import (
	"net/url"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/known/provider"
)

func TestUpstreamsOfARequest(t *testing.T) {
	at := func(host, key string, unpaid bool) UpstreamConfig {
		return UpstreamConfig{BaseURL: &url.URL{Scheme: "https", Host: host}, APIKey: key, Unpaid: unpaid}
	}
	clients := &Tenant{Upstream: at("openai", "", false), Providers: map[provider.Name]UpstreamConfig{provider.Anthropic: at("anthropic", "", false)}}
	operators := &Tenant{
		Upstream: at("openai", "operator", false), Providers: map[provider.Name]UpstreamConfig{provider.Anthropic: at("anthropic", "", true)},
	}
	for name, c := range map[string]struct {
		tenant *Tenant
		means  provider.Name
		keys   []string
		want   string // empty: the request is refused
	}{
		"the provider's own":                     {clients, provider.Anthropic, []string{"k"}, "anthropic"},
		"the usual one for others":               {clients, provider.ChatGPT, []string{"k"}, "openai"},
		"an Anthropic key in OpenAI's protocol":  {clients, provider.OpenAI, []string{"sk-ant-k"}, "anthropic"},
		"an OpenAI key in Anthropic's protocol":  {clients, provider.Anthropic, []string{"sk-proj-k"}, "openai"},
		"a key that is not the first":            {clients, provider.OpenAI, []string{"dummy", "sk-ant-k"}, "anthropic"},
		"a key that the operator's replaces":     {operators, provider.OpenAI, []string{"sk-ant-k"}, "openai"},
		"a provider without an operator's key":   {operators, provider.Anthropic, []string{"tenant-key"}, ""},
		"a provider's key beside the tenant's":   {operators, provider.Anthropic, []string{"tenant-key", "sk-ant-k"}, ""},
		"a client's own key for such a provider": {operators, provider.Anthropic, []string{"sk-ant-k"}, "anthropic"},
	} {
		got := ""
		if up := c.tenant.upstreamFor(c.means, c.keys); up != nil {
			got = up.BaseURL.Host
		}
		if got != c.want {
			t.Errorf("%s: goes to %q, want %q", name, got, c.want)
		}
	}
}
