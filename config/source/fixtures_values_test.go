package source

import (
	"reflect"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// badValues lists files with invalid values.
func badValues() []badFixture {
	types, keys := strings.Join(catalogue.Types(), ", "), strings.Join(syntax.KeysOf(reflect.TypeFor[config.Condenser]()), ", ")
	return []badFixture{
		{"bad.admin-token-missing.yaml", []string{
			`admin.token: is missing while admin.listen is not on loopback: set a token, or listen on 127.0.0.1 (line 1)`,
		}},
		{"bad.admin-tokens.yaml", []string{
			`admin.tokens[0].name: is not a name: write who has the token, in letters, digits, spaces and . - _ @ (line 3)`,
			`admin.tokens[1].role: is not viewer, auditor or operator (line 4)`,
			`admin.tokens[1]: is also the token of admin.tokens[0]: give each its own (line 4)`,
			`admin.tokens[2].name: is also the name of admin.tokens[1]: the audit log could not tell them apart (line 5)`,
			`admin.tokens[2].tenants[0]: is not the name of a tenant: correct it (line 5)`,
			`admin.tokens[2].sha256: is not 64 hexadecimal digits: write the SHA-256 of the key, never the key itself (line 5)`,
			`admin.tokens[3]: has neither sha256 nor env: give the key's SHA-256, or name the variable that holds it (line 6)`,
			`admin.tokens[4].name: is also the name of admin.token: the audit log could not tell them apart (line 7)`,
			`admin.tokens[4]: is also the token of admin.token: give each its own (line 7)`,
		}},
		{"bad.base-url-garbage.yaml", []string{
			`upstream.base_url: is not a URL: write it as https://api.openai.com/v1 (line 1)`,
			`llms.a.base_url: has no port between 1 and 65535: correct it, or leave it out (line 2)`,
		}},
		{"bad.base-url-host.yaml", []string{
			`upstream.base_url: has no host: write it as https://api.openai.com/v1 (line 1)`,
		}},
		{"bad.base-url-password.yaml", []string{
			`upstream.base_url: contains a user name or password: remove it, and set api_key (line 1)`,
		}},
		{"bad.base-url-query.yaml", []string{
			`upstream.base_url: contains a key in its query: remove it, and set api_key (line 1)`,
		}},
		{"bad.base-url-scheme.yaml", []string{
			`upstream.base_url: does not begin with http:// or https://: write it as https://api.openai.com/v1 (line 1)`,
		}},
		{"bad.condenser-foreign-key.toml", []string{
			`condenser.llm_config: does not belong to type "amortized_forgetting": remove it, or use trigger, max_size, max_tokens, min_tokens, keep_first, minimum_progress, per_model, keep, agent_request, condense_command, recall (line 3)`,
			`condenser.attention_window: does not belong to type "amortized_forgetting": remove it, or use trigger, max_size, max_tokens, min_tokens, keep_first, minimum_progress, per_model, keep, agent_request, condense_command, recall (line 4)`,
		}},
		{"bad.condenser-foreign-key.yaml", []string{
			`condenser.max_size: does not belong to type "noop": remove it, this type has no keys (line 1)`,
		}},
		{"bad.condenser-llm-unknown.yaml", []string{
			`condenser.llm_config: is not an entry of llms: use one of cheap, or leave it empty for the request's own model (line 2)`,
		}},
		{"bad.condenser-type.yaml", []string{
			`condenser.type: "summary" is not a condenser type: use one of ` + types + ` (line 1)`,
		}},
		{"bad.condenser-type-and-more.yaml", []string{
			`condenser.max_size: must be a whole number, not a string: write it without quotes, decimal point or unit (line 1)`,
			`condenser.foo: is not a known key: use one of ` + keys + ` (line 1)`,
			`condenser.type: "lmm" is not a condenser type: did you mean llm? (line 1)`,
		}},
		{"bad.condenser-windows.yaml", []string{
			`condenser.condensers[0].attention_window: is not positive: write a number of at least 1 (line 4)`,
			`condenser.condensers[0].stride: is not positive: write a number of at least 1 (line 4)`,
			`condenser.condensers[1].attention_window: is not positive: write a number of at least 1 (line 5)`,
			`condenser.condensers[2].max_events: is not positive: write a number of at least 1 (line 6)`,
			`condenser.condensers[3].keep_first: is 2, and must be below max_events = 2: lower it, or raise max_events (line 7)`,
			`condenser.condensers[4].max_event_length: is not positive: write a number of at least 1 (line 8)`,
			`condenser.condensers[5].type: is missing: use one of ` + types + ` (line 9)`,
		}},
		{"bad.keep.yaml", []string{
			`condenser.condensers[5].keep: does not belong to type "noop": remove it, this type has no keys (line 10)`,
			`condenser.condensers[6].keep: must be a section of keys, not a list: write it as {tools: ...} or {patterns: ...} (line 11)`,
			`condenser.condensers[6].prompt_file: does not belong to type "excerpts": remove it, or use trigger, max_size, max_tokens, min_tokens, keep_first, minimum_progress, per_model, recite, keep, agent_request, condense_command, recall (line 11)`,
			`condenser.condensers[7].keep.tool: is not a known key: did you mean tools? (line 12)`,
			`condenser.condensers[7].recite: must be true or false, not a string: write it without quotes (line 12)`,
			`condenser.keep: names nothing: give it tools or patterns, or remove it (line 3)`,
			`condenser.condensers[0].keep: has a tool without a name: write the name as in the client's requests (line 5)`,
			`condenser.condensers[1].keep: keeps all tools: name those whose results have to stay (line 6)`,
			`condenser.condensers[2].keep: has the tool "a*b", with a * before its end: write a name, or the beginning of one and a * (line 7)`,
			"condenser.condensers[3].keep: has the pattern \"(\", which is not a regular expression: mend it (error parsing regexp: missing closing ): `(`) (line 8)",
			`condenser.condensers[4].keep: has the pattern "x*", which occurs in every text: write one that does not match an empty text (line 9)`,
			`condenser.condensers[7].keep: names nothing: give it tools or patterns, or remove it (line 12)`,
		}},
		{"bad.memory.yaml", []string{
			`tenants[0].memory: has file and webhook: keep one of them (line 4)`,
			`tenants[0].memory.max_pending: is negative: write a number, or leave it out (line 4)`,
			`tenants[0].memory.webhook.url: does not begin with http:// or https://: write it as https://example.com/findings (line 4)`,
			`tenants[0].memory.webhook.secret: begins with whsec_, but the rest is not base64: copy all of it (line 4)`,
			`tenants[1].memory: has no destination: set file, webhook.url or mcp.url, or remove it (line 7)`,
			`tenants[1].memory.max_age: is negative: write a duration such as 30s (line 7)`,
			`tenants[1].memory.webhook.url: is missing while secret is set: set it, or remove secret (line 7)`,
			`tenants[1].memory.mcp.api_key: has no use without url: set url, or remove it (line 7)`,
			`tenants[1].memory.mcp.url: is missing while tool or arguments is set: set it, or remove them (line 7)`,
			`tenants[1].memory.mcp.arguments: is not a JSON object: write it as '{"text": "{findings}"}' (line 7)`,
			`tenants[2].memory.mcp.tool: is missing while arguments is set: name the tool that takes them (line 10)`,
			`tenants[3].memory.webhook.url: contains a user name or password: remove it, and set secret to sign the requests instead (line 13)`,
		}},
		{"bad.budget-endless.yaml", []string{
			`limits.tenant.session_budget.usd: is not a finite number: write it as 0.75 (line 4)`,
			`limits.tenant.budget.usd: is not an amount from 0 to 1000000000: write one, or 0 for no budget in dollars (line 3)`,
		}},
		{"bad.budget.yaml", []string{
			`limits.max_body: is not positive: write a size such as 64MiB (line 2)`,
			`limits.tenant.budget.usd: is not an amount from 0 to 1000000000: write one, or 0 for no budget in dollars (line 4)`,
			`limits.tenant.budget.then: is not one of refuse, condense: use one of them (line 4)`,
			`limits.tenant.budget.period: is not between 1m and 366d: write the length of the budget's period, such as day, month or 30d (line 4)`,
			`limits.tenant.session_budget.then: is not one of refuse, condense: use one of them (line 5)`,
			`limits.tenant.session_budget.period: is not between 1m and 366d: write the length of the budget's period, such as day, month or 30d (line 5)`,
		}},
		{"bad.knowledge-also.yaml", []string{
			`knowledge.also[0]: has neither header nor sessions: say for which requests it is, or name its folder as knowledge.folder (line 3)`,
			`knowledge.also[1].folder: is missing: name the folder, or remove the entry (line 4)`,
			`knowledge.also[2].header: is not a header with its value: write it as "X-Project: web" (line 5)`,
			`knowledge.also[3].sessions: is not a pattern: write it as "web-*", and a [ that stands for itself as \\[ (line 6)`,
		}},
		{"bad.knowledge.yaml", []string{
			`knowledge: is for a configuration without tenants: set it in each tenant that needs it, or remove it (line 1)`,
			`knowledge.max_tokens: is negative: write a number of tokens, or leave it out (line 1)`,
			`tenants[0].knowledge.folder: is missing while max_tokens is set: name the folder, or remove max_tokens (line 3)`,
		}},
		{"bad.encryption.yaml", []string{
			`store.encryption.keys.same: is also the key of store.encryption.keys.hex: make a different one for each (line 9)`,
			`store.encryption.keys.short: is not 32 bytes in base64 or hexadecimal: make one with openssl rand -base64 32, put it in an environment variable, and write ${NAME} (line 5)`,
			`store.encryption.keys: has an id that is not plain: use up to 32 letters, digits, - and _, and write the key after it (line 4)`,
			`store.encryption.active: is not an entry of keys: name one of them, or leave it empty to encrypt nothing new (line 3)`,
		}},
		{"bad.custom.yaml", []string{
			`condenser.condensers[0].url: is missing: write the address of the service, such as http://127.0.0.1:9000/condense (line 4)`,
			`condenser.condensers[1].url: is missing: write the address of the service, such as http://127.0.0.1:9000/condense (line 5)`,
			`condenser.condensers[2].url: contains a user name or password: remove it, and set api_key (line 6)`,
		}},
		{"bad.keep-first-negative.yaml", []string{
			`condenser.keep_first: is negative: write a number of events (line 1)`,
		}},
		{"bad.keep-first-no-tail.yaml", []string{
			`condenser.keep_first: is 4, which leaves no room for an event after the summary in max_size/2 = 5: lower it, or raise max_size (line 1)`,
		}},
		{"bad.keep-first-too-large.toml", []string{
			`condenser.keep_first: is 5, and must be below max_size/2 = 5: lower it, or raise max_size (line 4)`,
		}},
		{"bad.limits-too-small.yaml", []string{
			`limits.bytes_in_flight: is below max_body: raise it, so that one request of max_body fits (line 1)`,
		}},
		{"bad.shutdown.yaml", []string{
			`shutdown.delay: is negative: write a duration such as 30s (line 1)`,
			`shutdown.timeout: is not positive: write a duration such as 5m (line 1)`,
		}},
		{"bad.limits.yaml", []string{
			`limits.max_body: is not positive: write a size such as 64MiB (line 1)`,
			`limits.max_header: is not positive: write a size such as 16KiB (line 1)`,
			`limits.bytes_in_flight: is negative: write a size such as 512MiB, or 0 to derive it from the memory (line 1)`,
			`limits.upstream_response_header_timeout: is negative: write a duration such as 30s (line 1)`,
			`limits.stream_idle_timeout: is negative: write a duration such as 30s (line 1)`,
			`limits.summariser_timeout: is not positive: write a duration such as 30s (line 1)`,
		}},
		{"bad.listen-twice.yaml", []string{
			`admin.listen: is the same address as listen: give the admin listener its own port (line 2)`,
		}},
		{"bad.listen.yaml", []string{
			`listen: is not host:port: write it as 127.0.0.1:8080 (line 1)`,
			`admin.listen: has no port between 0 and 65535: write it as 127.0.0.1:9090 (line 2)`,
		}},
		{"bad.llm-max-output.yaml", []string{
			`llms.a.max_output: is above the 16384 tokens that the model may write: lower it, or describe the model in models (line 3)`,
			`llms.b.max_output: fills the model's window of 1000 tokens: lower it, or describe the model in models (line 4)`,
			`llms.c.max_output: fills the model's window of 128000 tokens: lower it, or describe the model in models (line 5)`,
		}},
		{"bad.llm-not-a-section.toml", []string{
			`llm: must be a section, not a string: write [llm.NAME] (line 1)`,
		}},
		{"bad.compaction.yaml", []string{
			`upstream.compaction: is not one of auto, pass, answer: use one of them (line 1)`,
			`tenants[0].upstream.compaction: is not one of auto, pass, answer: use one of them (line 5)`,
		}},
		{"bad.llm-api.yaml", []string{
			`llms.b.api: is not one of chat, messages, responses, gemini: use one of them (line 4)`,
		}},
		{"bad.llm-numbers.yaml", []string{
			`llms.cheap.api_key: contains a space, line break or control character: write the key alone (line 2)`,
			`llms.cheap.timeout: is negative: write a duration such as 30s (line 2)`,
			`llms.cheap.max_output: is negative: write a number of tokens, or 0 for the default (line 2)`,
			`llms.cheap.temperature: is not between 0 and 2: correct it, or remove it (line 2)`,
			`llms.cheap.reasoning_effort: is not one of none, minimal, low, medium, high, xhigh, max: use one of them (line 2)`,
		}},
		{"bad.llm-twice.toml", []string{
			`llm.cheap: is also given under llms: keep one (line 3)`,
		}},
		{"bad.llm-two-spellings.toml", []string{
			`llms.cheap.max_output: is given twice, under two names: keep one (line 4)`,
		}},
		{"bad.llm-without-model.yaml", []string{
			`llms[""]: has an empty name: name it, as in llms.cheap (line 3)`,
			`llms.cheap.model: is missing: name the model to call (line 2)`,
		}},
		{"bad.log-content-with-tenants.yaml", []string{
			`log_content: is for a configuration without tenants: set it in each tenant that needs it, or remove it (line 1)`,
		}},
		{"bad.log.yaml", []string{
			`log.level: is not one of debug, info, warn, error: use one of them (line 1)`,
			`log.format: is not one of auto, json, console: use one of them (line 1)`,
		}},
		{"bad.max-tokens-fraction.yaml", []string{
			`condenser.max_tokens: is neither a share nor a whole number: write a share of the window up to 1, or a number of tokens (line 1)`,
		}},
		{"bad.max-tokens-zero.yaml", []string{
			`condenser.max_tokens: is not positive: write a share of the window up to 1, or a number of tokens (line 1)`,
		}},
		{"bad.model-limits.yaml", []string{
			`models[""]: has an empty name: name the model (line 4)`,
			`models["gpt-4.1"].max_output: is not between 1 and context_window: write the longest answer in tokens (line 3)`,
			`models["gpt-4.1"].encoding: is not one of o200k_base, cl100k_base: use one of them (line 3)`,
			`models.mine.context_window: is not positive: write the window's size in tokens (line 2)`,
			`models.mine.max_output: is not between 1 and context_window: write the longest answer in tokens (line 2)`,
		}},
		{"bad.model-price.yaml", []string{
			`models.mine.price.output: must be a number, not a string: write it without quotes or unit (line 2)`,
			`models.dear.price: is above 10,000: prices are in USD per million tokens (line 4)`,
			`models.half.price.input: is 0 or missing while another price is set, so that the model has no price: set it, or remove the others (line 3)`,
			`models.mine.price.input: is negative: write USD per million tokens (line 2)`,
		}},
		{"bad.gateway.yaml", []string{
			`tenants[0].gateway: must be true or false, not a string: write it without quotes (line 1)`,
		}},
		{"bad.notify-with-tenants.yaml", []string{
			`notify: is for a configuration without tenants: set it in each tenant that needs it, or remove it (line 1)`,
		}},
		{"bad.pipeline-empty.yaml", []string{
			`condenser.condensers: is empty: name at least one condenser (line 1)`,
		}},
		{"bad.redis-address.yaml", []string{
			`store.redis.addrs[0]: is not host:port: write it as 127.0.0.1:6379 (line 1)`,
		}},
		{"bad.redis-cluster-and-sentinel.toml", []string{
			`store.redis.addrs[0]: has no host: write it as host:port (line 4)`,
			`store.redis.master_name: is set together with cluster: remove one of them, since a Cluster has no Sentinel (line 6)`,
			`store.redis.db: selects a database together with cluster: remove its number, since a Cluster has only database 0 (line 7)`,
		}},
		{"bad.redis-max-size.yaml", []string{
			`store.max_size: is set together with type redis, which does not use it: remove it, and set maxmemory in the Redis server (line 3)`,
		}},
		{"bad.redis-no-address.yaml", []string{
			`store.redis.addrs: is empty: name at least one server as host:port (line 1)`,
		}},
		{"bad.redis-sentinel.yaml", []string{
			`store.redis.tls_key: is missing while tls_cert is set: name both files, or neither (line 1)`,
			`store.redis.sentinel_password: is missing while sentinel_username is set: set it, or remove sentinel_username (line 1)`,
			`store.redis.master_name: is missing while sentinel_username or sentinel_password is set: name the master, or remove them (line 1)`,
		}},
		{"bad.redis-several.yaml", []string{
			`store.redis.addrs: names several servers: set cluster or master_name, or keep one (line 1)`,
			`store.redis.db: is negative: write the number of the database (line 1)`,
			`store.redis.tls_ca: is set without tls: set tls to true, or remove it (line 1)`,
			`store.redis.password: is missing while username is set: set it, or remove username (line 1)`,
		}},
		{"bad.redis-url-and-parts.yaml", []string{
			`store.redis.url: is set together with addrs, username, password, db, tls: remove one or the other, since the URL includes them all (line 3)`,
		}},
		{"bad.redis-url-cluster.yaml", []string{
			`store.redis.url: selects a database together with cluster: remove its number, since a Cluster has only database 0 (line 1)`,
			`store.redis.tls_key: is set without tls: set tls to true, or remove it (line 1)`,
			`store.redis.tls_cert: is missing while tls_key is set: name both files, or neither (line 1)`,
			`store.redis.url: has a user name without a password: write it as redis://user:password@host:6379/0 (line 1)`,
		}},
		{"bad.redis-url.yaml", []string{
			`store.redis.url: does not begin with redis:// or rediss://: write it as redis://user:password@host:6379/0 (line 1)`,
		}},
		{"bad.secret-with-newline.yaml", []string{
			`upstream.api_key: contains a space, line break or control character: write the key alone (line 2)`,
		}},
		{"bad.session.yaml", []string{
			`session.headers[0]: is not a header name: write it as x-session-id (line 1)`,
			`session.headers[1]: does not identify a conversation: remove it (line 1)`,
			`session.headers[2]: is not a header name: write it as x-session-id (line 1)`,
			`session.body_fields[0]: does not identify a conversation: remove it (line 1)`,
			`session.body_fields[1]: is empty: write it as metadata.session_id (line 1)`,
		}},
		{"bad.sizes.yaml", []string{
			`condenser.max_size: is not positive: write a number of at least 1 (line 1)`,
			`condenser.minimum_progress: is not between 0 and 1: write a share of the events, such as 0.1 (line 1)`,
			`condenser.max_event_length: is not positive: write a number of at least 1 (line 1)`,
			`condenser.focus: is unknown: write one of auto, coding, research, conversation (line 1)`,
			`condenser.timeout: is negative: write a duration such as 30s (line 1)`,
			`condenser.wait: is unknown: write deadline or never (line 1)`,
			`condenser.background_at: is neither 0 nor a share from 0.5 to below 1: write 0.8, or 0 to prepare no summaries (line 1)`,
		}},
		{"bad.store-max-size.yaml", []string{
			`store.max_size: is negative: write a size such as 4GiB, or 0 for no cap (line 1)`,
		}},
		{"bad.store-secret-short.yaml", []string{
			`store.secret: is shorter than 16 characters: use a longer random one, or remove it (line 1)`,
		}},
		{"bad.store-timeout.yaml", []string{
			`store.timeout: is not between 50ms and 1m0s: write a duration such as 1s (line 1)`,
		}},
		{"bad.store-ttl.yaml", []string{
			`store.ttl: is not between 1m0s and 87600h0m0s: write a duration such as 720h (line 1)`,
		}},
		{"bad.store-type.yaml", []string{
			`store.type: is not one of embedded, redis: use one of them (line 1)`,
		}},
		{"bad.tenant-condenser.yaml", []string{
			`tenants[1].upstream.base_url: does not begin with http:// or https://: write it as https://api.openai.com/v1 (line 5)`,
			`tenants[1].upstream.api_key: contains a space, line break or control character: write the key alone (line 5)`,
			`tenants[1].upstream.timeout: is negative: write a duration such as 30s (line 5)`,
			`tenants[1].condenser.keep_first: is 120, and must be below max_size/2 = 120: lower it, or raise max_size (line 8)`,
		}},
		{"bad.tenant-keys.yaml", []string{
			`tenants[0].api_keys[0]: must be a section of keys, not a string: write it as {sha256: ...} or {env: ...} (line 4)`,
			`tenants[0].api_keys[1].sha256: is not 64 hexadecimal digits: write the SHA-256 of the key, never the key itself (line 5)`,
			`tenants[0].api_keys[2].env: is not the name of an environment variable: write the name, never the key itself (line 6)`,
			`tenants[0].api_keys[3].env: names the environment variable NOT_SET, which is empty or not set: set it (line 7)`,
			`tenants[0].api_keys[4]: has neither sha256 nor env: give the key's SHA-256, or name the variable that holds it (line 8)`,
			`tenants[0].api_keys[5]: has both sha256 and env: keep one (line 9)`,
		}},
		{"bad.tenant-limits.yaml", []string{
			`tenants[0].limits.requests_per_minute: is negative: write a number, or 0 for no limit (line 5)`,
			`tenants[0].limits.max_body: is above limits.max_body, which applies to every request: lower it, or raise limits.max_body (line 5)`,
			`tenants[1].limits.shared: needs a store that replicas share: set store.type to redis, or remove it (line 6)`,
			`tenants[1].limits.max_body: is negative: write a size such as 4MiB, or 0 for limits.max_body (line 6)`,
			`limits.tenant.concurrent: is negative: write a number, or 0 for no limit (line 1)`,
			`limits.tenant.tokens_per_minute: is negative: write a number, or 0 for no limit (line 1)`,
			`limits.tenant.summaries_per_minute: is negative: write a number, or 0 for no limit (line 1)`,
			`limits.tenant.summary_tokens_per_minute: is negative: write a number, or 0 for no limit (line 1)`,
		}},
		{"bad.tenant-name.yaml", []string{
			`tenants[0].name: is missing: name the tenant (line 2)`,
			`tenants[1].name: is not a plain name: use up to 64 letters, digits, - and _ (line 3)`,
		}},
		{"bad.tenant-no-keys.yaml", []string{
			`tenants[0].api_keys: is empty: give the tenant at least one key, or no client can use it (line 2)`,
		}},
		{"bad.holdout-condenser.yaml", []string{
			`tenants[1].holdout.share: must be a number, not a string: write it without quotes or unit (line 7)`,
			`tenants[1].holdout.conderser: is not a known key: did you mean condenser? (line 7)`,
			`tenants[2].holdout: must be a number, not a string: write it without quotes or unit (line 10)`,
			`tenants[0].holdout.share: is missing or 0, so that condenser is never used: write the share of sessions that it condenses, such as 0.1 (line 4)`,
			`tenants[0].holdout.condenser.max_size: is not positive: write a number of at least 1 (line 4)`,
		}},
		{"bad.holdout.yaml", []string{
			`holdout: is for a configuration without tenants: set it in each tenant that needs it, or remove it (line 1)`,
			`holdout: is not a share of sessions from 0 to 0.5: write 0.1 for a tenth, or 0 for none (line 1)`,
			`tenants[0].holdout: does not work together with observe, under which no session is condensed: remove one of them (line 6)`,
			`tenants[1].holdout: is not a share of sessions from 0 to 0.5: write 0.1 for a tenth, or 0 for none (line 9)`,
		}},
		{"bad.tenants-same-key.yaml", []string{
			`tenants[1].api_keys[1]: is also the key of tenants[0].api_keys[0]: write each key once, for one tenant (line 3)`,
		}},
		{"bad.tenants-same-name.yaml", []string{
			`tenants[1].name: is also the name of tenants[0]: give each tenant its own (line 3)`,
		}},
		{"bad.upstream-providers.yaml", []string{
			`upstream.openai.base_url: has no version: write it as https://api.openai.com/v1 (line 2)`,
			`upstream.anthropic.base_url: ends with /messages, which is added to it: remove that part (line 3)`,
			`upstream.anthropic.api_key: contains a space, line break or control character: write the key alone (line 3)`,
			`upstream.chatgpt.base_url: does not begin with http:// or https://: write it as https://api.openai.com/v1 (line 4)`,
			`upstream.gemini.base_url: is a link-local address or another one where clouds serve credentials: name another address (line 5)`,
		}},
		{"bad.upstream-timeout.yaml", []string{
			`upstream.timeout: is negative: write a duration such as 30s (line 1)`,
		}},
	}
}
