package source

import (
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// openHands rewrites what OpenHands' files say about condensers and their models: the whole config.toml, and settings of its SDK in JSON. It
// collects what has no effect here.
type openHands struct {
	problems *problems
	left     []string // keys that are left alone
	origin   string   // of the first of them
	warnings config.Problems
}

// leave removes a key and notes that it is left alone.
func (o *openHands) leave(section *node, path string, name string) {
	if f := section.take(name); f != nil && f.kind != kindNull {
		if len(o.left) == 0 {
			o.origin = f.origin
		}
		o.left = append(o.left, syntax.Join(path, name))
	}
}

// found returns the warnings about what has no effect here.
func (o *openHands) found() config.Problems {
	switch len(o.left) {
	case 0:
		return o.warnings
	case 1:
		o.warnings = append(o.warnings, config.Problem{Key: o.left[0], Message: "belongs to OpenHands and has no effect here: it may stay", Origin: o.origin})
	default:
		o.warnings = append(o.warnings, config.Problem{Key: strings.Join(o.left, ", "), Message: "belong to OpenHands and have no effect here: they may stay", Origin: o.origin})
	}
	return o.warnings
}

// sections removes the sections of OpenHands that do not concern condensers. It has to come before their variables are expanded, which need not
// be set here. A file that is the SDK's condenser becomes one with a condenser.
func (o *openHands) sections(root *node) {
	if settings := root.get("agent_settings"); settings != nil && settings.kind == kindTable {
		root.take("agent_settings")
		root.fields = append(root.fields, settings.fields...)
		for _, name := range []string{"conversation_settings", "active_profile"} {
			o.leave(root, "", name)
		}
	}
	if root.get("condenser_kind") != nil {
		whole := *root
		*root = node{kind: kindTable}
		root.set("condenser", &whole)
	}
	names := []string{"core", "agent", "sandbox", "security", "kubernetes", "mcp", "extended", "cli", "model_routing", "router_config", "eval", "jupyter"}
	if root.get("agent_kind") != nil || inSDK(root.get("condenser")) {
		names = append(names, "agent_kind", "agent_context", "critic", "enable_sub_agents", "enable_switch_llm_tool", "filter_tools_regex", "include_default_tools",
			"kind", "mcp_config", "name", "schema_version", "security_policy_filename", "system_prompt_filename", "system_prompt_kwargs",
			"tool_concurrency_limit", "tools", "verification")
	}
	for _, name := range names {
		o.leave(root, "", name)
	}
}

// inSDK reports whether a condenser is in the form of OpenHands' SDK.
func inSDK(c *node) bool {
	return c.get("type") == nil && (c.get("condenser_kind") != nil || c.get("kind") != nil || c.get("enabled") != nil)
}

// condenser rewrites a condenser of OpenHands' SDK. One that is not enabled is a noop.
func (o *openHands) condenser(root *node) {
	c := root.get("condenser")
	if !inSDK(c) {
		return
	}
	class, enabled := c.take("kind"), c.take("enabled")
	if kind := c.take("condenser_kind"); kind != nil {
		class = kind
	}
	for _, name := range []string{"hard_context_reset_context_scaling", "hard_context_reset_max_retries"} {
		o.leave(c, "condenser", name)
	}
	name := "llm" // older settings have no other condenser, and no kind
	if class != nil {
		name = class.text
		if meant := config.MeantType(name); meant != "" {
			name = meant
		}
	}
	if enabled != nil && enabled.text == "false" || name == "noop" {
		name, c.fields = "noop", nil
	}
	if llm := c.take("llm"); llm != nil && llm.kind == kindTable {
		llm.name = "condenser"
		o.llm(root, llm, &node{kind: kindTable})
		c.set("llm_config", &node{kind: kindText, text: llm.name, origin: llm.origin})
	}
	c.fields = slices.DeleteFunc(c.fields, func(f *node) bool { return f.kind == kindNull })
	c.set("type", &node{kind: kindText, text: name, origin: c.origin})
	setLimits(c)
}

// onlyLimits sets the trigger of every rolling condenser in a TOML file that does not say it. TOML is the format of OpenHands, whose condensers
// know only limits.
func onlyLimits(root *node) {
	if root == nil {
		return
	}
	root.each("", func(path string, n *node) {
		if path == "condenser" || n.name == "condenser" && strings.HasPrefix(path, "tenants") {
			setLimits(n)
		}
	})
}

// setLimits does so for one condenser with its stages.
func setLimits(c *node) {
	if stages := c.get("condensers"); stages != nil {
		for _, stage := range stages.items {
			setLimits(stage)
		}
	}
	named := catalogue.TypeExcerpts
	if given := c.get("type"); given != nil {
		named = given.text
	}
	if e, _ := catalogue.Find(named); e.Rolling() && c.kind == kindTable && len(c.fields) > 0 && c.get("trigger") == nil {
		c.set("trigger", &node{kind: kindText, text: catalogue.TriggerLimits, origin: c.origin})
	}
}

// llms rewrites OpenHands' [llm] and [llm.NAME] sections as entries of llms. As in OpenHands, a named section inherits the keys of [llm], which
// itself becomes the entry "llm".
func (o *openHands) llms(root *node) {
	section := root.take("llm")
	if section == nil || section.kind == kindNull {
		return
	}
	o.problems.givenAt("llm", section.origin)
	if section.kind != kindTable {
		o.problems.add("llm", "must be a section, not %s: write [llm.NAME]", section.kind)
		return
	}
	base := &node{kind: kindTable, origin: section.origin} // the keys of [llm]
	var named []*node                                      // the sections [llm.NAME]
	for _, f := range section.fields {
		if f.kind == kindTable && !slices.Contains(openHandsOnly, f.name) {
			named = append(named, f)
		} else {
			base.fields = append(base.fields, f)
		}
	}
	for _, name := range openHandsOnly {
		if ownKey(name) == "" { // else it depends on the model
			o.leave(base, "llm", name)
		}
	}
	if len(base.fields) > 0 && (base.get("model") != nil || len(named) == 0) {
		base.name = "llm"
		named = append(named, base)
	}
	for _, entry := range named {
		o.llm(root, entry, base)
	}
}

// llm makes an entry of llms of a section that inherits from base.
func (o *openHands) llm(root, entry, base *node) {
	llms := root.get("llms")
	if llms == nil || llms.kind == kindNull {
		llms = root.set("llms", &node{kind: kindTable})
	}
	if llms.kind != kindTable {
		return
	}
	key := syntax.Join("llm", entry.name)
	if llms.get(entry.name) != nil {
		o.problems.add(key, "is also given under llms: keep one")
		return
	}
	o.problems.foreign = append(o.problems.foreign, syntax.Join("llms", entry.name))
	llm := llms.set(entry.name, base.clone())
	llm.origin = entry.origin
	for _, f := range entry.fields {
		llm.set(f.name, f)
	}
	o.translate(llm, key)
}

// masked is what OpenHands' SDK writes in place of a secret.
const masked = "**********"

// translate converts the keys and units of an OpenHands section, and removes keys that have no meaning here.
func (o *openHands) translate(llm *node, key string) {
	model := "MODEL"
	if named := llm.get("model"); named != nil {
		model = named.text
	}
	for _, name := range openHandsOnly {
		if own := ownKey(name); own != "" && llm.get(name) != nil && llm.get(name).kind != kindNull {
			o.warn(llm.take(name), key, "belongs to OpenHands and has no effect here: set "+syntax.Join("models", model)+own)
		}
		o.leave(llm, key, name)
	}
	if secret := llm.get("api_key"); secret != nil && secret.text == masked {
		o.warn(llm.take("api_key"), key, "is a mask in place of the key, and is not used: write the key")
	}
	for _, f := range llm.fields {
		switch {
		case f.name == "max_output_tokens":
			f.name = "max_output"
		case f.name == "timeout" && f.kind == kindInteger:
			f.kind, f.text = kindText, f.text+"s"
		}
	}
	llm.fields = slices.DeleteFunc(llm.fields, func(f *node) bool { return f.kind == kindNull })
}

// warn adds a warning about a field of a section.
func (o *openHands) warn(f *node, section, message string) {
	o.warnings = append(o.warnings, config.Problem{Key: syntax.Join(section, f.name), Message: message, Origin: f.origin})
}

// ownKey returns the end of the key in models that says what a key of an OpenHands model says, or "" if there is none.
func ownKey(name string) string {
	switch name {
	case "max_input_tokens":
		return ".context_window"
	case "input_cost_per_token":
		return ".price.input, in USD per million tokens"
	case "output_cost_per_token":
		return ".price.output, in USD per million tokens"
	}
	return ""
}

// openHandsOnly lists the keys of an OpenHands model that have no meaning here.
var openHandsOnly = []string{
	"api_version", "aws_access_key_id", "aws_secret_access_key", "aws_region_name", "aws_session_token", "caching_prompt",
	"completion_kwargs", "correct_num", "custom_llm_provider", "custom_tokenizer", "disable_stop_word",
	"disable_vision", "drop_params", "embedding_base_url", "embedding_deployment_name", "embedding_model",
	"enable_encrypted_reasoning", "extended_thinking_budget", "extra_headers", "fallback_strategy", "force_string_serializer",
	"for_routing", "input_cost_per_token", "litellm_extra_body", "log_completions", "log_completions_folder", "max_input_tokens",
	"max_message_chars", "metadata", "model_canonical_name", "modify_params", "native_tool_calling", "num_retries", "ollama_base_url",
	"openrouter_app_name", "openrouter_site_url", "output_cost_per_token", "prompt_cache_retention", "reasoning_effort", "reasoning_summary",
	"retry_max_wait", "retry_min_wait", "retry_multiplier", "safety_settings", "seed", "service_id", "stream", "top_k", "top_p", "usage_id",
}
