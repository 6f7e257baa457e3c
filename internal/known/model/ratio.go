package model

import "regexp"

// answerRatio is how many times more than an input token an output token costs: the usual ratio of the table's prices.
const answerRatio = 5

// ratios lists what providers charge for cached reads and for writes to the cache, relative to the input price. The first entry whose pattern
// matches a folded name applies. The last one, for all other models, is what most providers charge.
var ratios = []struct {
	name         *regexp.Regexp
	read, write  float64
	seen, source string
}{
	{regexp.MustCompile("claude"), 0.1, 1.25, "2026-11-22", "docs.claude.com/en/docs/build-with-claude/prompt-caching"},
	{regexp.MustCompile("qwen|qwq"), 0.2, 1, "2026-11-30", "alibabacloud.com/help/en/model-studio/context-cache: implicit cache"},
	{regexp.MustCompile("glm|kimi|moonshot|grok"), 0.2, 1, "2026-11-30", "the prices of their other models in models.tsv"},
	{regexp.MustCompile(""), 0.1, 1, "2026-11-30", "most prices in models.tsv"},
}

// RatiosOf returns prices for a model whose own are not known, in units of its input price. They do for any decision that compares costs of
// the same model, but are no amounts of money. For a model on one's own hardware they stand for time: a prompt's cached part is read faster
// than the rest, by a factor that is larger still.
func RatiosOf(name string) Price {
	name = fold(name)
	for _, r := range ratios {
		if r.name.MatchString(name) {
			return Price{Input: 1, CachedInput: r.read, CacheWrite: r.write, Output: answerRatio}
		}
	}
	return Price{}
}
