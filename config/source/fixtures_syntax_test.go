package source

// badSyntax lists files that cannot be read into the structs.
func badSyntax() []badFixture {
	return []badFixture{
		{"bad.alias-bomb.yaml", []string{
			`testdata/bad.alias-bomb.yaml: contains more than 50000 values, aliases expanded: shorten it`,
		}},
		{"bad.complex-key.yaml", []string{
			`testdata/bad.complex-key.yaml: is not YAML: check indentation, colons and quotes (line 2)`,
		}},
		{"bad.duplicate-key.toml", []string{
			`testdata/bad.duplicate-key.toml: is not TOML: check quotes, brackets, and that no key or section is given twice (line 2)`,
		}},
		{"bad.duplicate-key.yaml", []string{
			`store.ttl: is given twice: keep one (line 4)`,
		}},
		{"bad.duplicate-table.toml", []string{
			`testdata/bad.duplicate-table.toml: is not TOML: check quotes, brackets, and that no key or section is given twice (line 3)`,
		}},
		{"bad.key-case.yaml", []string{
			`Listen: is not a known key: did you mean listen? (line 1)`,
		}},
		{"bad.merge-scalar.yaml", []string{
			`llms.a["<<"]: must name a section, not a string: write <<: *name (line 2)`,
		}},
		{"bad.no-extension", []string{
			`testdata/bad.no-extension: has no known extension: name it .yaml, .yml, .json or .toml`,
		}},
		{"bad.not-utf8.yaml", []string{
			`testdata/bad.not-utf8.yaml: is not UTF-8 text: save it as UTF-8`,
		}},
		{"bad.null-number.yaml", []string{
			`condenser.max_size: has no value: give it one, or remove the key (line 1)`,
			`tenants[0]: has no value: give it one, or remove it (line 2)`,
		}},
		{"bad.number-too-large.yaml", []string{
			`condenser.max_size: is out of range: write a smaller number (line 1)`,
			`limits.max_body: is too large: write a size below 8 EiB (line 2)`,
		}},
		{"bad.syntax.toml", []string{
			`testdata/bad.syntax.toml: is not TOML: check quotes, brackets, and that no key or section is given twice (line 2)`,
		}},
		{"bad.syntax.yaml", []string{
			`testdata/bad.syntax.yaml: is not YAML: check indentation, colons and quotes (line 2)`,
		}},
		{"bad.tag.yaml", []string{
			`listen: uses YAML that is not supported: write a plain value, without a tag (line 1)`,
		}},
		{"bad.too-deep-brackets.yaml", []string{
			`testdata/bad.too-deep-brackets.yaml: is nested too deeply: use flatter sections`,
		}},
		{"bad.too-deep-table.toml", []string{
			`testdata/bad.too-deep-table.toml: is nested too deeply: use flatter sections`,
			`tenants.x.x: is not a known key: use one of name, api_keys, upstream, condenser, observe, notify, gateway, knowledge, memory, log_content, holdout, limits (line 1)`,
			`tenants.x.api_keys: is empty: give the tenant at least one key, or no client can use it (line 1)`,
		}},
		{"bad.too-deep.toml", []string{
			`testdata/bad.too-deep.toml: is nested too deeply: use flatter sections`,
			`a: is not a known key: use one of listen, admin, upstream, store, llms, models, condenser, observe, notify, tenants, tenants_dir, cors, session, limits, shutdown, log, log_content, holdout, knowledge, memory, tenants_trusted, tenants_hosts (line 1)`,
		}},
		{"bad.too-deep.yaml", []string{
			`a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a: is nested too deeply: use flatter sections (line 1)`,
			`a: is not a known key: use one of listen, admin, upstream, store, llms, models, condenser, observe, notify, tenants, tenants_dir, cors, session, limits, shutdown, log, log_content, holdout, knowledge, memory, tenants_trusted, tenants_hosts (line 1)`,
		}},
		{"bad.top-level-list.yaml", []string{
			`testdata/bad.top-level-list.yaml: must contain keys, not a list: begin with a key, such as listen: 127.0.0.1:8080`,
		}},
		{"bad.two-documents.yaml", []string{
			`testdata/bad.two-documents.yaml: contains several YAML documents: keep one`,
		}},
		{"bad.unknown-anchor.yaml", []string{
			`llms.a: uses an anchor that is not defined above it: define it with &name first (line 2)`,
		}},
		{"bad.unknown-key-at-top.toml", []string{
			`listne: is not a known key: did you mean listen? (line 1)`,
		}},
		{"bad.unknown-key-in-condenser.yaml", []string{
			`condenser.max_sise: is not a known key: did you mean max_size? (line 1)`,
		}},
		{"bad.unknown-key-in-list.toml", []string{
			`tenants[0].keys: is not a known key: did you mean api_keys? (line 3)`,
			`tenants[0].api_keys[0].hash: is not a known key: use one of sha256, env (line 7)`,
		}},
		{"bad.unknown-key.yaml", []string{
			`upstream.url: is not a known key: did you mean base_url? (line 2)`,
		}},
		{"bad.variable-malformed.yaml", []string{
			`upstream.api_key: contains a ${ that is not ${NAME}: name a variable, or write $${ for a literal ${ (line 1)`,
			`store.path: contains a ${ that is not ${NAME}: name a variable, or write $${ for a literal ${ (line 2)`,
			`admin.token: contains a ${ that is not ${NAME}: name a variable, or write $${ for a literal ${ (line 3)`,
		}},
		{"bad.variable-unset.yaml", []string{
			`upstream.api_key: names the environment variable NOT_SET, which is not set: set it, or write $${ for a literal ${ (line 1)`,
		}},
		{"bad.wrong-types.toml", []string{
			`listen: must be a string, not a whole number: put it in quotes (line 1)`,
			`store.ttl: must be a duration, not a date: write it as 30s, 5m or 720h (line 3)`,
			`condenser.max_size: must be a whole number, not a decimal number: write 240 (line 5)`,
			`condenser.keep_first: must be a whole number, not a string: write 2 (line 6)`,
			`condenser.max_tokens: is not a finite number: write it as 0.75 (line 7)`,
		}},
		{"bad.wrong-types.yaml", []string{
			`listen: must be a string, not a list: put it in quotes (line 1)`,
			`store.content: must be true or false, not a string: write true (line 2)`,
			`store.ttl: is not a duration: write it with a unit, such as 30s, 5m or 720h (line 2)`,
			`store.redis.db: must be a whole number, not a decimal number: write it without quotes, decimal point or unit (line 2)`,
			`store.redis.addrs: must be a list, not a string: write it in brackets, as [A, B] (line 2)`,
			`llms: must be a section of named entries, not a list: write it as {NAME: ...} (line 3)`,
			`condenser.max_size: must be a whole number, not a string: write it without quotes, decimal point or unit (line 4)`,
			`condenser.max_tokens: is not a finite number: write it as 0.75 (line 4)`,
			`tenants.a: must be a section of keys, not a string: write it as {name: ...} or {api_keys: ...} (line 5)`,
			`log: must be a section of keys, not a string: write it as {level: ...} or {format: ...} (line 6)`,
			`limits.max_body: is not a size: write it as 64MiB or as a whole number of bytes (line 7)`,
			`limits.max_header: must be a size, not true or false: write it as 64MiB (line 7)`,
		}},
	}
}
