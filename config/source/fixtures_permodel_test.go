package source

// badPerModel lists files with invalid overrides.
func badPerModel() []badFixture {
	const keys = "max_size, max_tokens, min_tokens, keep_first, minimum_progress, max_event_length, background_at"
	return []badFixture{
		{"bad.per-model-keys.yaml", []string{
			`condenser.per_model.a.type: cannot be set per model: remove it, or use ` + keys + ` (line 5)`,
			`condenser.per_model.b.llm_config: cannot be set per model: remove it, or use ` + keys + ` (line 6)`,
			`condenser.per_model.b.timeout: cannot be set per model: remove it, or use ` + keys + ` (line 6)`,
			`condenser.per_model.b.per_model: cannot be set per model: remove it, or use ` + keys + ` (line 6)`,
			`condenser.per_model.c.attention_window: does not belong to type "llm": remove it, or use ` + keys + ` (line 7)`,
			`condenser.per_model.d.max_sise: is not a known key: did you mean max_size? (line 8)`,
			`condenser.per_model.e.max_size: must be a whole number, not a string: write it without quotes, decimal point or unit (line 9)`,
			`condenser.per_model.e.keep_first: has no value: give it one, or remove the key (line 9)`,
			`condenser.per_model.f: overrides nothing: give it one of ` + keys + `, or remove it (line 10)`,
			`condenser.per_model.g: overrides nothing: give it one of ` + keys + `, or remove it (line 11)`,
			`condenser.per_model.h: must be a section of keys, not a whole number: write it as {max_size: ...} or {max_tokens: ...} (line 12)`,
			`tenants[0].condenser.per_model: does not belong to type "pipeline": remove it, or use condensers, keep, agent_request, condense_command, recall (line 18)`,
			`tenants[0].condenser.condensers[0].per_model: does not belong to type "noop": remove it, this type has no keys (line 19)`,
			`tenants[0].condenser.condensers[1].per_model: must be a section of named entries, not a list: write it as {NAME: ...} (line 19)`,
		}},
		{"bad.per-model-names.yaml", []string{
			`condenser.per_model[""]: has an empty name: name the model (line 4)`,
			`condenser.per_model["*"]: matches every model: set the condenser's own keys (line 5)`,
			`condenser.per_model["gpt**"]: has a * before its end: write the model, or a prefix of its name and one * (line 7)`,
			`condenser.per_model["gpt-*-mini"]: has a * before its end: write the model, or a prefix of its name and one * (line 6)`,
		}},
		{"bad.per-model-sizes.yaml", []string{
			`condenser.condensers[0].llm_config: is not an entry of llms: add it to llms, or leave it empty for the request's own model (line 6)`,
			`condenser.condensers[0].per_model["gpt-4.1"].keep_first: is 30, and must be below max_size/2 = 30: lower it, or raise max_size (line 9)`,
			`condenser.condensers[0].per_model.gpt-4o.max_size: is not positive: write a number of at least 1 (line 8)`,
			`condenser.condensers[0].per_model["gpt-5*"].keep_first: is 30, which leaves no room for an event after the summary in max_size/2 = 31: lower it, or raise max_size (line 12)`,
			`condenser.condensers[0].per_model.o4-mini.max_tokens: is neither a share nor a whole number: write a share of the window up to 1, or a number of tokens (line 11)`,
			`condenser.condensers[0].per_model.o4-mini.minimum_progress: is not between 0 and 1: write a share of the events, such as 0.1 (line 11)`,
			`condenser.condensers[0].per_model.o4-mini.max_event_length: is not positive: write a number of at least 1 (line 11)`,
			`condenser.condensers[0].per_model.o4-mini.background_at: is neither 0 nor a share from 0.5 to below 1: write 0.8, or 0 to prepare no summaries (line 11)`,
			`condenser.condensers[1].condensers[0].per_model.a.keep_first: is 2, and must be below max_events = 2: lower it, or raise max_events (line 15)`,
			`condenser.condensers[1].condensers[0].per_model.b.keep_first: is 100, and must be below max_events = 100: lower it, or raise max_events (line 15)`,
			`condenser.condensers[1].condensers[1].stride: is not positive: write a number of at least 1 (line 16)`,
			`condenser.condensers[1].condensers[1].per_model.a.attention_window: is not positive: write a number of at least 1 (line 16)`,
			`condenser.condensers[1].condensers[1].per_model.b.stride: is not positive: write a number of at least 1 (line 16)`,
		}},
		{"bad.per-model.toml", []string{
			`condenser.per_model: must be a section of named entries, not a string: write it as {NAME: ...} (line 3)`,
			`tenants[0].condenser.per_model["gpt-4.1"].attention_window: does not belong to type "structured_summary": remove it, or use ` + keys + ` (line 14)`,
			`tenants[0].condenser.per_model["gpt-4.1"].keep_first: is 2, and must be below max_size/2 = 1: lower it, or raise max_size (line 12)`,
		}},
	}
}
