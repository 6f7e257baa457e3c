package model

import (
	"iter"
	"regexp"
	"slices"
	"strings"
)

// maxName bounds the names that are looked up, in bytes.
const maxName = 256

// spellings yields the names that a model may have in the table, the most exact first: the folded name, and then shorter names
// with one ending after another removed.
func spellings(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if len(name) > maxName || strings.Contains(name, "*") {
			return
		}
		for spelling := fold(name); spelling != "" && yield(spelling); {
			shorter := trim(spelling)
			if shorter == spelling {
				return
			}
			spelling = shorter
		}
	}
}

// fold removes the host and vendor of a model ("openrouter/openai/", "us.anthropic.", "ft:") and its edition (":free", "-v1:0"),
// and normalises case and punctuation: "Anthropic/Claude-3.5-Haiku" becomes claude-3-5-haiku, Ollama's "gpt-oss:20b"
// gpt-oss-20b.
func fold(name string) string {
	name, tuned := strings.CutPrefix(strings.ToLower(name), "ft:")
	name = name[strings.LastIndexByte(name, '/')+1:]
	name = name[len(host.FindString(name)):]
	if base, edition, ok := strings.Cut(name, ":"); ok {
		switch {
		case tuned || slices.Contains(editions, edition):
			name = base
		case isDigits(edition): // Bedrock's -v1:0, or -1:0
			name = strings.TrimSuffix(base, "-1")
		}
	}
	name = strings.TrimSuffix(name, "[1m]") // Claude Code's mark of a long window
	return llama(decimals(dashes.Replace(name)))
}

var dashes = strings.NewReplacer(".", "-", "_", "-", ":", "-", "@", "-")

// editions are suffixes after a colon that do not name another model.
var editions = []string{"free", "thinking", "latest", "nitro", "floor", "online", "exacto", "extended", "beta", "cloud"}

// host matches the region and the vendor, as Bedrock writes them, or the host that some gateways prepend. deepseek is not among the vendors,
// since Bedrock calls its models deepseek.r1 and deepseek.v3.
var host = regexp.MustCompile(`^(?:(?:us|eu|apac|ap|au|jp|ca|us-gov|global)\.)?` +
	`(?:(?:anthropic|meta|mistral|openai|qwen|moonshot|moonshotai|zai|google|xai)\.)?` +
	`(?:(?:azure|databricks|bedrock|vertex|openrouter)-)?`)

// decimals rewrites version numbers as in Fireworks' llama-v3p3 to llama-v3-3.
func decimals(name string) string {
	for i := 1; i+1 < len(name); i++ {
		if name[i] == 'p' && isDigits(name[i-1:i]) && isDigits(name[i+1:i+2]) {
			return name[:i] + "-" + decimals(name[i+1:])
		}
	}
	return name
}

// llama rewrites llama3, llama-v3 and meta-llama-3 to llama-3.
func llama(name string) string {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "meta-"), "llama")
	if !ok {
		return name
	}
	return "llama-" + strings.TrimPrefix(strings.TrimPrefix(rest, "-"), "v")
}

// trim removes an ending that names a version, a serving format, an effort or a tariff. It returns a name without one unchanged.
func trim(name string) string {
	for _, ending := range slices.Concat(endings, tariffs) {
		if base, ok := strings.CutSuffix(name, ending); ok {
			return base
		}
	}
	return strings.TrimSuffix(name, date.FindString(name))
}

// endings change neither a model's sizes nor its price. An ending that changes the price, or names another model, needs its own
// entry in the table.
var endings = []string{
	"-latest", "-preview", "-exp", "-experimental", "-free", "-thinking", "-reasoning", "-non",
	"-minimal", "-low", "-medium", "-high", "-xhigh",
	"-v1", "-v2", "-maas", "-cloud", "-tee", "-hf", "-fp8", "-fp4", "-nvfp4", "-mxfp4", "-bf16", "-int4", "-int8",
	"-awq", "-gptq", "-gguf", "-mlx", "-4bit", "-8bit", "-tput",
}

// tariffs are endings that change a model's price, but not its sizes.
var tariffs = []string{"-fast", "-batch", "-flex", "-priority", "-highspeed"}

// date is the date of a version at the end of a name: -2024-08-06, -20250514, -0613, -001, or -06-05.
var date = regexp.MustCompile(`-(?:\d{4}-\d\d-\d\d|\d\d-\d\d|\d{8}|\d{3,4})$`)

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
