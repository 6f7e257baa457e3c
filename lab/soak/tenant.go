package soak

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// tenant is one of those whose agents share the proxies.
type tenant struct {
	number    int
	name      string
	key       string // of its clients
	outward   string // key with which the proxy goes upstream for it
	condenser condenser
}

// condenser is a configuration to be soaked.
type condenser struct {
	name string
	yaml string
	own  bool // its summariser is the request's own model, called with the tenant's key upstream
	logs bool // all that it does is in the log: the view can be made again from there
	upstream
}

// upstream is what is special about the server that a tenant's requests go to.
type upstream struct {
	seals      fakeupstream.Seal // its answers carry reasoning of this form, and it refuses what comes back in another place
	alternates bool              // it refuses two messages of a user in a row
}

// strict reports whether it refuses what others take: a request that it refuses is sent to it again in another way.
func (u upstream) strict() bool { return u != upstream{} }

// bound reports whether the reasoning in its answers is bound to all that stands before it, so that a client that changes its own history
// loses it.
func (u upstream) bound() bool {
	return u.seals == fakeupstream.SealThinkingBlocks || u.seals == fakeupstream.SealClaudeDetails
}

// The models: of the agents, and of the summarisers.
const (
	modelMain  = "soak-main"
	modelCheap = "soak-cheap"

	cheapKey = "sk-soak-summariser"
)

const (
	rolling  = `{type: llm, llm_config: cheap, max_size: 16, min_tokens: 0}`
	trimming = `{type: pipeline, condensers: [{type: tool_output_trim, max_event_length: 700}, `
)

// condensers are the configurations, one a tenant, in turn. Limits are low, so that condensations are many.
func condensers() []condenser {
	return []condenser{
		{name: "llm", yaml: rolling, logs: true},
		{name: "pipeline: tool_output_trim, observation_masking, llm",
			yaml: trimming + `{type: observation_masking, attention_window: 8, stride: 4}, {type: llm, llm_config: cheap, max_size: 20, min_tokens: 0}]}`},
		{name: "structured_summary, the request's own model",
			yaml: `{type: structured_summary, max_size: 40, min_tokens: 0, max_tokens: 2500}`, own: true, logs: true},
		{name: "llm_attention", yaml: `{type: llm_attention, llm_config: cheap, max_size: 18, min_tokens: 0}`, logs: true},
		{name: "pipeline: tool_output_trim, amortized_forgetting", yaml: trimming + `{type: amortized_forgetting, max_size: 16, min_tokens: 0}]}`, logs: true},
		{name: "recent_events", yaml: `{type: recent_events, keep_first: 2, max_events: 14}`},
		{name: "conversation_window, on request", yaml: `{type: conversation_window}`, logs: true},
		{name: "llm, thinking blocks", yaml: rolling, upstream: upstream{seals: fakeupstream.SealThinkingBlocks}},
		{name: "excerpts, sealed details", yaml: `{type: excerpts, max_size: 16, min_tokens: 0}`, upstream: upstream{seals: fakeupstream.SealClaudeDetails}},
		{name: "pipeline: tool_output_trim, llm; reasoning items", yaml: trimming + rolling + `]}`, upstream: upstream{seals: fakeupstream.SealResponsesDetails}},
		{name: "llm, thought signatures", yaml: rolling, upstream: upstream{seals: fakeupstream.SealThoughtSignature}},
		{name: "llm, alternating roles", yaml: rolling, upstream: upstream{alternates: true}},
	}
}

func newTenants(n int) []*tenant {
	all := make([]*tenant, n)
	kinds := condensers()
	for i := range all {
		all[i] = &tenant{
			number: i, name: fmt.Sprintf("tenant-%d", i), key: fmt.Sprintf("sk-soak-client-%d", i),
			outward: fmt.Sprintf("sk-soak-upstream-%d", i), condenser: kinds[i%len(kinds)],
		}
	}
	return all
}

// secret seeds all hashes, so that the end's checks can make them too.
const secret = "a secret of the soak and of nobody else"

// configuration is the file of every replica. The store's section is in YAML's flow style.
func configuration(upstream, store string, tenants []*tenant) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
llms: {cheap: {model: %s, api_key: %s}}
models:
  %s: {context_window: 128000, max_output: 4000, encoding: o200k_base}
  %s: {context_window: 128000, max_output: 4000, encoding: o200k_base}
limits: {stream_keep_alive: 0s, upstream_response_header_timeout: %s, stream_idle_timeout: %s, summariser_timeout: %s}
tenants:
`, upstream, store, modelCheap, cheapKey, modelMain, modelCheap, silence, silence, summarises)
	for _, t := range tenants {
		fmt.Fprintf(&b, "  - {name: %s, api_keys: [{sha256: %x}], upstream: {api_key: %s}, condenser: %s}\n",
			t.name, sha256.Sum256([]byte(t.key)), t.outward, t.condenser.yaml)
	}
	return b.String()
}
