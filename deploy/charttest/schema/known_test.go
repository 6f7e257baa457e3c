package schema

import (
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/dialect/protocols"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
)

// known says what a key's type does not. What one value makes of another is left to Dewpoint itself.
func known() map[string]schema {
	optional := schema{"pattern": `^(https?://[^@?#]+|` + variable + `)?$`}
	name := schema{"pattern": `^[A-Za-z_][A-Za-z0-9_]*$`}
	everywhere := schema{"pattern": `^(0\.0\.0\.0|\[::\])?:[1-9][0-9]{0,4}$`} // in a pod, loopback cannot be reached
	all := map[string]schema{
		"listen":                        everywhere,
		"admin.listen":                  everywhere,
		"upstream.compaction":           {"enum": compactions()},
		"tenants[].upstream.compaction": {"enum": compactions()},
		"llms.*.base_url":               optional,
		"llms.*.api":                    {"enum": protocols.Names()},
		"llms.*":                        {"required": []string{"model"}},
		"llms.*.temperature":            {"maximum": 2},
		"models.*.encoding":             {"enum": []string{model.EncodingO200k, model.EncodingCL100k}},
		"condensers[].trigger":          {"enum": []string{catalogue.TriggerLimits, catalogue.TriggerEconomics}},
		"condensers[].focus":            {"enum": catalogue.Focuses()},
		"store.type":                    {"enum": []string{config.StoreEmbedded, config.StoreRedis}},
		"store.path":                    {"pattern": `^/var/lib/dewpoint/[^/]+$`}, // the volume
		"tenants[]":                     {"required": []string{"api_keys"}},
		"tenants_dir":                   {"pattern": `^(/.*)?$`},
		"tenants[].name":                {"pattern": `^[A-Za-z0-9_-]{1,64}$`},
		"tenants[].api_keys":            {"minItems": 1},
		"tenants[].api_keys[]":          {"minProperties": 1, "maxProperties": 1},
		"tenants[].api_keys[].sha256":   {"pattern": `^[0-9a-fA-F]{64}$`},
		"tenants[].api_keys[].env":      name,
		"log.level":                     {"enum": []string{"debug", "info", "warn", "error"}},
		"log.format":                    {"enum": []string{config.FormatAuto, config.FormatJSON, config.FormatConsole}},
	}
	for _, section := range []string{"", ".openai", ".anthropic", ".chatgpt", ".gemini"} {
		all["upstream"+section+".base_url"], all["tenants[].upstream"+section+".base_url"] = optional, optional
	}
	return all
}

func compactions() []string {
	return []string{config.CompactionAuto, config.CompactionPass, config.CompactionAnswer}
}
