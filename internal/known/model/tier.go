package model

// tiers lists what models cost with long prompts, by their names in the table, as of 2026-12-01: input and output by
// BerriAI/litellm's model_prices_and_context_window.json and inference.sh/apps/openrouter/gemini-3-1-pro-preview. Cached reads cost a tenth of
// input, as with short prompts.
var tiers = map[string]Tier{
	"gemini-2-5-pro":                     {Above: 200_000, Input: 2.5, CachedInput: 0.25, Output: 15},
	"gemini-3-pro":                       {Above: 200_000, Input: 4, CachedInput: 0.4, Output: 18},
	"gemini-3-1-pro":                     {Above: 200_000, Input: 4, CachedInput: 0.4, Output: 18},
	"gemini-3-1-pro-preview-customtools": {Above: 200_000, Input: 4, CachedInput: 0.4, Output: 18},
}
