package model

import "testing"

// TestSpellings looks up names as clients, gateways and hosts write them.
func TestSpellings(t *testing.T) {
	for of, names := range map[string][]string{
		"gpt-4o": {
			"gpt-4o", "GPT-4o", "openai/gpt-4o", "azure/eu/gpt-4o", "gpt-4o-2024-08-06",
			"ft:gpt-4o-2024-08-06:team::id", "openai.gpt-4o",
		},
		"gpt-4o-mini":  {"gpt-4o-mini-2024-07-18", "openrouter/openai/gpt-4o-mini", "azure-gpt-4o-mini"},
		"gpt-4-1-mini": {"gpt-4.1-mini", "gpt-4.1-mini-2025-04-14", "azure/gpt-4.1-mini", "models/gpt-4.1-mini"},
		"gpt-5":        {"GPT-5", "openai/gpt-5-batch", "gpt-5-2025-08-07", "gpt-5-high", "databricks-gpt-5"},
		"gpt-5-chat":   {"gpt-5-chat-latest"},
		"gpt-5-6-sol":  {"gpt-5.6", "openai/gpt-5.6-sol", "gpt-5.6-sol-2026-07-09"},
		"gpt-6-2-sol":  {"gpt-6.2-sol", "openrouter/openai/gpt-6.2-sol:nitro"},
		"gpt-oss-20b":  {"gpt-oss:20b", "openai/gpt-oss-20b:free", "openai.gpt-oss-20b-1:0", "gpt-oss-20b-mxfp4-gguf"},
		"gpt-oss-120b": {
			"gpt-oss:120b", "gpt-oss:120b-cloud", "accounts/fireworks/models/gpt-oss-120b", "gpt-oss-120b-maas",
		},
		"o3-mini": {"o3-mini-high", "o3-mini-2025-01-31"},
		"gpt-4":   {"gpt-4-0613"},
		"gpt-3-5-turbo": {
			"gpt-3.5-turbo-0125", "gpt-35-turbo", "azure/gpt-35-turbo-0613",
		},
		"claude-sonnet-4": {
			"claude-sonnet-4-20250514", "us.anthropic.claude-sonnet-4-20250514-v1:0", "anthropic/claude-sonnet-4",
		},
		"claude-sonnet-4-5": {
			"claude-sonnet-4-5-20250929", "anthropic.claude-sonnet-4-5-20250929-v1:0", "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
			"anthropic/claude-sonnet-4.5", "anthropic/claude-4.5-sonnet", "claude-sonnet-4-5@20250929", "claude-sonnet-4-5-20250929[1m]",
			"anthropic/claude-sonnet-4.5:thinking", "claude-sonnet-4-5-thinking", "databricks-claude-sonnet-4-5",
			"arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
		},
		"claude-opus-4-6": {"us.anthropic.claude-opus-4-6-v1", "claude-opus-4.6"},
		"claude-opus-5-5": {"openrouter/anthropic/claude-opus-5.5", "eu.anthropic.claude-opus-5-5", "Claude_Opus_5_5"},
		"claude-opus-4-5": {"vertex_ai/claude-opus-4-5@20251101", "bedrock/anthropic.claude-opus-4-5-20251101-v1:0"},
		"claude-3-5-sonnet": {
			"claude-3-5-sonnet-latest", "anthropic/claude-3.5-sonnet:beta",
			"anthropic.claude-3-5-sonnet-20241022-v2:0",
		},
		"claude-3-5-haiku": {"anthropic/claude-3.5-haiku"},
		"gemini-2-0-flash": {"models/gemini-2.0-flash-001", "gemini-2.0-flash-exp"},
		"gemini-2-5-pro": {
			"google/gemini-2.5-pro-preview-06-05", "gemini/gemini-2.5-pro", "gemini-2.5-pro-preview",
			"vertex_ai/gemini-2.5-pro",
		},
		"gemini-3-1-pro":    {"google/gemini-3.1-pro-preview"},
		"grok-4":            {"x-ai/grok-4", "grok-4-0709", "grok-4-latest"},
		"grok-4-1-fast":     {"grok-4-1-fast-non-reasoning", "x-ai/grok-4.1-fast"},
		"grok-4-20":         {"grok-4.20-0309-reasoning"},
		"deepseek-v3-1":     {"accounts/fireworks/models/deepseek-v3p1", "deepseek-ai/DeepSeek-V3.1"},
		"deepseek-v3-2":     {"deepseek.v3.2-maas", "deepseek/deepseek-v3.2-exp", "deepseek-v3.2-thinking"},
		"deepseek-r1":       {"us.deepseek.r1-v1:0", "deepseek/deepseek-r1-0528:free"},
		"deepseek-v4-flash": {"deepseek/deepseek-v4-flash-0731"},
		"qwen3-coder-30b-a3b-instruct": {
			"qwen3-coder:30b", "qwen.qwen3-coder-30b-a3b-v1:0", "Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8",
		},
		"qwen3-coder-480b-a35b-instruct": {"qwen/qwen3-coder:free", "qwen3-coder:480b-cloud"},
		"qwen3-8-max":                    {"qwen/qwen3.8-max-0902", "qwen3.8-max-2026-09-02"},
		"qwen3-5-plus":                   {"qwen/qwen3.5-plus-02-15"},
		"kimi-k2-5":                      {"accounts/fireworks/models/kimi-k2p5", "moonshotai/kimi-k2.5"},
		"kimi-k2-0905":                   {"moonshotai/Kimi-K2-Instruct-0905"},
		"glm-4-7": {
			"zai.glm-4.7", "z-ai/glm-4.7", "zai-org/GLM-4.7-FP8", "accounts/fireworks/models/glm-4p7",
		},
		"llama-3-3-70b-instruct": {
			"meta-llama/Llama-3.3-70B-Instruct", "llama3.3:70b", "us.meta.llama3-3-70b-instruct-v1:0",
			"accounts/fireworks/models/llama-v3p3-70b-instruct",
		},
		"llama-3-1-8b-instruct": {
			"meta-llama/Meta-Llama-3.1-8B-Instruct", "@cf/meta/llama-3.1-8b-instruct-fp8", "llama3.1:8b",
		},
		"llama-3-3-70b-instruct-turbo": {"meta-llama/Llama-3.3-70B-Instruct-Turbo"},
		"llama-4-maverick": {
			"meta.llama4-maverick-17b-128e-instruct-v1:0", "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8",
		},
		"mistral-large-2407":   {"mistral.mistral-large-2407-v1:0", "mistralai/mistral-large-2407"},
		"mistral-large-latest": {"mistral/mistral-large-latest"},
		"codestral-2508":       {"codestral-latest"},
		"muse-spark-1-3":       {"meta/muse-spark-1.3"},
	} {
		for _, name := range names {
			if _, got := (Table{}).Lookup(name); got != of {
				t.Errorf("%s is known as %q, want %s", name, got, of)
			}
		}
	}
}

func FuzzLookup(f *testing.F) {
	for _, name := range []string{"us.anthropic.claude-sonnet-4-20250514-v1:0", "gpt-oss:20b", "llama-v3p3-70b", "-latest-latest", "p1p1p"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		info, known := Table{}.Lookup(name)
		if info.Price = (Price{}); known == "" {
			return
		}
		if want := parse(entries()[known]); want.ContextWindow != info.ContextWindow || want.Encoding != info.Encoding {
			t.Errorf("%q is known as %q", name, known)
		}
	})
}
