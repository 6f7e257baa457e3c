package model

import (
	"iter"
	"slices"
	"strings"
)

// maxName bounds the names that are looked at, in bytes.
const maxName = 256

// spellings yields the names that a model may have in the table, the most exact first: the name without its vendor, and
// then without one ending after the other.
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

// fold drops what says where a model is served ("openrouter/openai/", "us.anthropic.", "ft:") and in which edition (":free",
// "-v1:0"), and folds case and punctuation: "Anthropic/Claude-3.5-Haiku" is claude-3-5-haiku, Ollama's "gpt-oss:20b"
// gpt-oss-20b.
func fold(name string) string {
	name, tuned := strings.CutPrefix(strings.ToLower(name), "ft:")
	name = unhosted(name[strings.LastIndexByte(name, '/')+1:])
	if base, edition, ok := strings.Cut(name, ":"); ok {
		switch {
		case tuned || slices.Contains(editions(), edition):
			name = base
		case digits(edition): // Bedrock's -v1:0, or -1:0
			name = strings.TrimSuffix(base, "-1")
		}
	}
	name = strings.TrimSuffix(name, "[1m]") // Claude Code's mark of a long window
	return llama(decimals(strings.Map(dashed, name)))
}

func dashed(r rune) rune {
	if strings.ContainsRune("._:@", r) {
		return '-'
	}
	return r
}

// editions are what may follow a colon without meaning another model.
func editions() []string {
	return []string{"free", "thinking", "latest", "nitro", "floor", "online", "exacto", "extended", "beta", "cloud"}
}

// unhosted drops region and vendor as Bedrock writes them, and the hosts that some gateways put first.
func unhosted(name string) string {
	for _, regions := range [...][]string{
		{"us.", "eu.", "apac.", "ap.", "au.", "jp.", "ca.", "us-gov.", "global."},
		// Not deepseek: Bedrock names its models deepseek.r1 and deepseek.v3.
		{"anthropic.", "meta.", "mistral.", "openai.", "qwen.", "moonshot.", "moonshotai.", "zai.", "google.", "xai."},
		{"azure-", "databricks-", "bedrock-", "vertex-", "openrouter-"},
	} {
		for _, prefix := range regions {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				name = rest
				break
			}
		}
	}
	return name
}

// decimals writes Fireworks' llama-v3p3 as llama-v3-3.
func decimals(name string) string {
	for i := 1; i+1 < len(name); i++ {
		if name[i] == 'p' && digits(name[i-1:i]) && digits(name[i+1:i+2]) {
			return name[:i] + "-" + decimals(name[i+1:])
		}
	}
	return name
}

// llama writes llama3, llama-v3 and meta-llama-3 as llama-3.
func llama(name string) string {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "meta-"), "llama")
	if !ok {
		return name
	}
	return "llama-" + strings.TrimPrefix(strings.TrimPrefix(rest, "-"), "v")
}

// trim drops an ending that names a version, a way of serving, an effort or a tariff; the name itself if it has none.
func trim(name string) string {
	for _, ending := range append(endings(), tariffs()...) {
		if base, ok := strings.CutSuffix(name, ending); ok {
			return base
		}
	}
	return undated(name)
}

// endings do not change what a model holds. What changes its price, or the model, is an entry of its own in the table.
func endings() []string {
	return []string{
		"-latest", "-preview", "-exp", "-experimental", "-free", "-thinking", "-reasoning", "-non",
		"-minimal", "-low", "-medium", "-high", "-xhigh",
		"-v1", "-v2", "-maas", "-cloud", "-tee", "-hf", "-fp8", "-fp4", "-nvfp4", "-mxfp4", "-bf16", "-int4", "-int8",
		"-awq", "-gptq", "-gguf", "-mlx", "-4bit", "-8bit", "-tput",
	}
}

// tariffs are endings that do not change what a model holds, but what it costs.
func tariffs() []string { return []string{"-fast", "-batch", "-flex", "-priority", "-highspeed"} }

// undated drops the ending that is the date of a version: -2024-08-06, -20250514, -0613, -001, or -06-05.
func undated(name string) string {
	for _, layout := range [...]string{"-0000-00-00", "-00-00", "-00000000", "-0000", "-000"} {
		if base := len(name) - len(layout); base > 0 && shaped(name[base:], layout) {
			return name[:base]
		}
	}
	return name
}

// shaped reports whether s is a layout with other digits. Both are of one length.
func shaped(s, layout string) bool {
	for i := range len(s) {
		if layout[i] == '0' && !digits(s[i:i+1]) || layout[i] != '0' && layout[i] != s[i] {
			return false
		}
	}
	return true
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
