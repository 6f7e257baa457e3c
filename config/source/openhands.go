package source

import (
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// adoptOpenHands rewrites OpenHands' [llm] and [llm.NAME] sections as entries of llms, and returns warnings about keys without effect here. As in
// OpenHands, a named section inherits the keys of [llm], which itself becomes the entry "llm".
func adoptOpenHands(root *node, p *problems) (unused config.Problems) {
	section := root.take("llm")
	if section == nil || section.kind == kindNull {
		return nil
	}
	p.givenAt("llm", section.origin)
	if section.kind != kindTable {
		p.add("llm", "must be a section, not %s: write [llm.NAME]", section.kind)
		return nil
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
	if len(base.fields) > 0 && (base.get("model") != nil || len(named) == 0) {
		base.name = "llm"
		named = append(named, base)
	}
	for _, entry := range named {
		unused = append(unused, adoptLLM(root, entry, base, p)...)
	}
	return unused
}

func adoptLLM(root, entry, base *node, p *problems) (unused config.Problems) {
	llms := root.get("llms")
	if llms == nil || llms.kind == kindNull {
		llms = root.set("llms", &node{kind: kindTable})
	}
	if llms.kind != kindTable {
		return nil
	}
	key := syntax.Join("llm", entry.name)
	if llms.get(entry.name) != nil {
		p.add(key, "is also given under llms: keep one")
		return nil
	}
	llm := llms.set(entry.name, base.clone())
	llm.origin = entry.origin
	for _, f := range entry.fields {
		llm.set(f.name, f)
	}
	return translateLLM(llm, key)
}

// translateLLM converts the keys and units of an OpenHands section, and removes keys that have no meaning here.
func translateLLM(llm *node, key string) (unused config.Problems) {
	model := "MODEL"
	if named := llm.get("model"); named != nil {
		model = named.text
	}
	llm.fields = slices.DeleteFunc(llm.fields, func(f *node) bool {
		switch {
		case slices.Contains(openHandsOnly, f.name):
			unused = append(unused, config.Problem{Key: syntax.Join(key, f.name), Message: unusedMessage(f.name, model), Origin: f.origin})
			return true
		case f.name == "max_output_tokens":
			f.name = "max_output"
		case f.name == "timeout" && f.kind == kindInteger:
			f.kind, f.text = kindText, f.text+"s"
		}
		return false
	})
	slices.SortFunc(unused, func(a, b config.Problem) int { return strings.Compare(a.Key, b.Key) })
	return unused
}

// unusedMessage returns the warning about a key of OpenHands that has no effect here. Prices and windows have keys of their own.
func unusedMessage(name, model string) string {
	own := ""
	switch name {
	case "max_input_tokens":
		own = ".context_window"
	case "input_cost_per_token":
		own = ".price.input, in USD per million tokens"
	case "output_cost_per_token":
		own = ".price.output, in USD per million tokens"
	default:
		return "is OpenHands' key and has no effect here: it may stay"
	}
	return "is OpenHands' key and has no effect here: set " + syntax.Join("models", model) + own
}

// openHandsOnly lists the keys of an OpenHands model that have no meaning here.
var openHandsOnly = []string{
	"api_version", "aws_access_key_id", "aws_secret_access_key", "aws_region_name", "caching_prompt",
	"completion_kwargs", "correct_num", "custom_llm_provider", "custom_tokenizer", "disable_stop_word",
	"disable_vision", "drop_params", "embedding_base_url", "embedding_deployment_name", "embedding_model",
	"for_routing", "input_cost_per_token", "log_completions", "log_completions_folder", "max_input_tokens",
	"max_message_chars", "modify_params", "native_tool_calling", "num_retries", "ollama_base_url",
	"openrouter_app_name", "openrouter_site_url", "output_cost_per_token", "reasoning_effort", "retry_max_wait",
	"retry_min_wait", "retry_multiplier", "safety_settings", "seed", "top_k", "top_p",
}
