package source

import (
	"strings"
	"testing"
)

// TestWarnings: each setting that is valid but cannot be meant has one warning, and what is close to it has none.
func TestWarnings(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		wantProblems(t, mustBuild(t, ".yaml", text).Warnings, want...)
	}
	f("")
	f("condenser: {type: llm, max_tokens: 75}",
		"condenser.max_tokens: is 75 tokens, which every request of an agent exceeds, so that each step is condensed: write 0.75 for 75% of the model's window, or 75000 if thousands are meant (line 1)")
	f("condenser: {type: excerpts, max_tokens: 1000}",
		"condenser.max_tokens: is 1000 tokens, which every request of an agent exceeds, so that each step is condensed: write 1000000 if thousands are meant, or a share of the model's window such as 0.75 (line 1)")
	f("condenser: {type: llm, max_tokens: 0.0075}",
		"condenser.max_tokens: is 0.75% of the model's window, which every request of an agent exceeds, so that each step is condensed: write a share such as 0.75, or a number of tokens such as 100000 (line 1)")
	f("condenser: {type: recent_events, max_tokens: 50}",
		"condenser.max_tokens: is 50 tokens, so that hardly more than the newest step is shown: write 0.5 for 50% of the model's window, or 50000 if thousands are meant (line 1)")
	f("condenser: {type: recent_events, max_tokens: 0}")
	f("condenser: {type: llm, max_tokens: 0.01}")
	f("condenser: {type: llm, max_tokens: 1}")
	f("condenser: {type: llm, max_tokens: 1001}")
	f("condenser: {type: pipeline, condensers: [{type: lossless_trim}, {type: llm, per_model: {gpt-4o: {max_tokens: 80}}}]}",
		"condenser.condensers[1].per_model.gpt-4o.max_tokens: is 80 tokens, which every request of an agent exceeds, so that each step is condensed: write 0.8 for 80% of the model's window, or 80000 if thousands are meant (line 1)")
	f("tenants: {a: {api_keys: [{sha256: "+strings.Repeat("ab", 32)+"}], condenser: {type: llm, max_tokens: 2}, limits: {max_body: 64}}}",
		"tenants.a.condenser.max_tokens: is 2 tokens, which every request of an agent exceeds, so that each step is condensed: write 0.02 for 2% of the model's window, or 2000 if thousands are meant (line 1)",
		"tenants.a.limits.max_body: is 64 bytes, so that nearly every request is refused with status 413: write it with a unit, such as 64MiB (line 1)")

	f("models: {small: {context_window: 128, max_output: 16}, large: {context_window: 200000000}, fine: {context_window: 1000, max_output: 100}}",
		"models.large.context_window: is 200000000 tokens, more than any model has, so that nothing is condensed for it before upstream refuses a request: write tokens, not bytes (line 1)",
		"models.small.context_window: is 128 tokens, so that every request counts as too long and is condensed: write 128000 if thousands are meant (line 1)")
	f("limits: {max_body: 64, max_header: 16, tenant: {max_body: 4}}\nstore: {max_size: 4}",
		"store.max_size: is 4 bytes, so that sessions are forgotten at once: write it with a unit, such as 4GiB (line 2)",
		"limits.max_body: is 64 bytes, so that nearly every request is refused with status 413: write it with a unit, such as 64MiB (line 1)",
		"limits.max_header: is 16 bytes, so that nearly every request is refused with status 431: write it with a unit, such as 16KiB (line 1)",
		"limits.tenant.max_body: is 4 bytes, so that nearly every request is refused with status 413: write it with a unit, such as 64MiB (line 1)")
	f("limits: {max_body: 64KiB}\nstore: {max_size: 0}")

	f("llms: {own: {model: my-model}}\ncondenser: {type: llm, llm_config: own, trigger: limits}",
		"condenser.llm_config: names llms.own, whose price is not known, so that savings and budgets in dollars leave its calls out: set models.my-model.price (line 2)")
	f("llms: {own: {model: my-model}}\nmodels: {my-model: {price: {input: 1}}}\ncondenser: {type: llm, llm_config: own}")
	f("llms: {own: {model: my-model, base_url: 'http://localhost:1/v1'}}\ncondenser: {type: llm, llm_config: own}")
	f("llms: {own: {model: my-model}}\ncondenser: {type: llm, llm_config: own}",
		"condenser.llm_config: names llms.own, whose price is not known, so that savings and budgets in dollars leave its calls out, and by price it counts as expensive as the request's own model: set models.my-model.price (line 2)")
	f("llms: {cheap: {model: gpt-4o-mini}}\ncondenser: {type: llm}",
		"llms.cheap: has no effect, because no condenser names it: set llm_config to cheap in a condenser, or remove it (line 1)")

	const open = ": begins with http:// and names a host on the internet, so that keys and conversations are sent without encryption: write https:// (line 1)"
	f("upstream: {base_url: 'http://api.openai.com/v1'}", "upstream.base_url"+open)
	f("llms: {a: {model: gpt-4o-mini, base_url: 'http://8.8.8.8:8000/v1'}}\ncondenser: {type: llm, llm_config: a}", "llms.a.base_url"+open)
	f("condenser: {type: custom, url: 'http://condense.example.com/v1'}", "condenser.url"+open)
	f("memory: {webhook: {url: 'http://findings.example.com'}}", "memory.webhook.url"+open)
	for _, private := range []string{"https://api.openai.com", "http://127.0.0.1:8000", "http://10.0.0.7", "http://[fd00::1]:80", "http://vllm", "http://localhost:1",
		"http://vllm.models.svc.cluster.local:8000", "http://vllm.models.svc", "http://gateway.internal", "http://Box.LOCAL."} {
		f("upstream: {base_url: '" + private + "/v1'}")
	}

	f("condenser: {type: llm, deadline: 30s}",
		"condenser.deadline: has no effect with wait: never, under which no request waits: set wait to deadline, or remove it (line 1)")
	f("condenser: {type: llm, deadline: 30s, wait: deadline}")
	f("store: {type: redis, path: x.db}", "store.path: has no effect with store.type redis: remove it (line 1)")
	f("store: {redis: {addrs: ['redis:6379']}}",
		"store.redis: has no effect with store.type embedded: set store.type to redis, or remove it (line 1)")
	f("tenants_trusted: true", "tenants_trusted: has no effect without tenants_dir: set tenants_dir, or remove it (line 1)")
	f("tenants_hosts: [llm.example.com]",
		"tenants_hosts: has no effect, because it restricts only files of tenants_dir that are not trusted: set tenants_dir and leave tenants_trusted false, or remove it (line 1)")
	f("admin: {token: t0k3n-t0k3n-t0k3n, hosts: [dewpoint.internal]}", "admin.hosts: has no effect while admin.token is set: remove one of them (line 1)")
	f("observe: true\nknowledge: {folder: .}",
		"knowledge: has no effect with observe, under which requests are forwarded unchanged: remove one of them (line 2)")
}
