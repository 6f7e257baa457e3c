package model

import (
	"strings"
	"testing"
	"time"
)

// lines returns the lines of the built-in table without comments.
func lines() []string {
	var out []string
	for line := range strings.Lines(tsv) {
		if !strings.HasPrefix(line, "#") {
			out = append(out, strings.TrimSuffix(line, "\n"))
		}
	}
	return out
}

// TestEntries checks that the table is sorted, has no duplicates, and is valid as a configuration of models.
func TestEntries(t *testing.T) {
	before := ""
	for _, line := range lines() {
		name, rest, _ := strings.Cut(line, "\t")
		if name <= before {
			t.Errorf("%s comes after %s", name, before)
		}
		before = name
		if entries()[name] != line {
			t.Errorf("%s is not found", name)
		}
		if folded := fold(name); folded != name && !strings.HasSuffix(name, "*") {
			t.Errorf("%s is written %s", name, folded)
		}
		if of, ok := strings.CutPrefix(rest, "="); ok {
			if entries()[of] == "" || strings.Contains(entries()[of], "\t=") {
				t.Errorf("%s is another name of %q, which does not exist", name, of)
			}
			continue
		}
		checkEntry(t, line)
	}
}

func checkEntry(t *testing.T, line string) {
	t.Helper()
	cells := strings.Split(line, "\t")
	if len(cells) != columns || cells[columnSource] == "" {
		t.Fatalf("%q has %d columns", line, len(cells))
	}
	if _, err := time.Parse(time.DateOnly, cells[columnDate]); err != nil {
		t.Errorf("%s: %v", cells[columnName], err)
	}
	switch Signature(cells[columnSignature]) {
	case SignatureUnknown, SignatureAuthor, SignaturePlace:
	default:
		t.Errorf("the signature of %s proves %q", cells[columnName], cells[columnSignature])
	}
	info := parse(line)
	if info.Encoding != EncodingO200k && info.Encoding != EncodingCL100k {
		t.Errorf("the encoding of %s is %q", cells[columnName], info.Encoding)
	}
	family := strings.HasSuffix(cells[columnName], "*")
	if !family && (info.MaxOutput <= 0 || info.MaxOutput >= info.ContextWindow && info.ContextWindow > 40000) {
		t.Errorf("%s answers %d tokens of %d", cells[columnName], info.MaxOutput, info.ContextWindow)
	}
	p := info.Price
	if p != (Price{}) && !(p.CachedInput > 0 && p.CachedInput <= p.Input && p.Input <= p.CacheWrite && p.Input < p.Output) {
		t.Errorf("the price of %s is %+v", cells[columnName], p)
	}
}

// TestSignatureOf: older Claude models sign reasoning without its place, however their names are spelled; of other models nothing is known.
func TestSignatureOf(t *testing.T) {
	for name, want := range map[string]Signature{
		"claude-sonnet-4-5-20250929": SignatureAuthor, "anthropic/claude-haiku-4.5": SignatureAuthor, "claude-opus-4-8": SignatureAuthor,
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0": SignatureAuthor, "claude-fable-5-1": SignaturePlace, "claude-opus-5-5": SignaturePlace,
		"claude-sonnet-5": SignatureUnknown, "claude-nova-9": SignatureUnknown, "gpt-5.5": SignatureUnknown, "": SignatureUnknown,
	} {
		if got := SignatureOf(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestLookup(t *testing.T) {
	for name, want := range map[string]Info{
		"gpt-4o-2024-05-13":                     {128000, 4096, EncodingO200k, Price{5, 5, 5, 15, Tier{}}, false},
		"gpt-4o-mini":                           {128000, 16384, EncodingO200k, Price{0.15, 0.075, 0.15, 0.6, Tier{}}, false},
		"gpt-6.2-sol":                           {1050000, 128000, EncodingO200k, Price{2, 0.1, 2.5, 10, Tier{}}, false},
		"gpt-3.5-turbo":                         {16385, 4096, EncodingCL100k, Price{0.5, 0.5, 0.5, 1.5, Tier{}}, false},
		"claude-opus-5-5":                       {1000000, 128000, EncodingO200k, Price{4, 0.2, 5, 20, Tier{}}, false},
		"claude-fable-5-2":                      {1000000, 128000, EncodingO200k, Price{}, false},
		"deepseek-v4-pro":                       {1000000, 384000, EncodingO200k, Price{}, false},
		"llama-3.3-70b-instruct":                {131072, 4096, EncodingCL100k, Price{}, false},
		"qwen2.5-72b-instruct":                  {131072, 8192, EncodingCL100k, Price{}, false},
		"gpt-5-fast":                            {400000, 128000, EncodingO200k, Price{}, false},
		"muse-spark-1.3":                        {1048576, 131072, EncodingO200k, Price{1.25, 0.15, 1.25, 4.25, Tier{}}, false},
		"mistral-large-2402":                    {32000, 3200, EncodingO200k, Price{}, false},
		"grok-4.20-non-reasoning":               {1000000, 128000, EncodingO200k, Price{1.25, 0.2, 1.25, 2.5, Tier{}}, false},
		"kimi-k2-0711-preview":                  {131072, 16384, EncodingO200k, Price{}, false},
		"kimi-k2-0905-preview":                  {262144, 32768, EncodingO200k, Price{}, false},
		"glm-4.6":                               {200000, 96000, EncodingO200k, Price{0.6, 0.11, 0.6, 2.2, Tier{}}, false},
		"gemini-3-pro-preview":                  {1048576, 64000, EncodingO200k, Price{2, 0.2, 2, 12, Tier{200_000, 4, 0.4, 18}}, false},
		"gpt-4-1106-preview":                    {128000, 4096, EncodingCL100k, Price{10, 10, 10, 30, Tier{}}, false},
		"o1-preview":                            {128000, 32768, EncodingO200k, Price{15, 7.5, 15, 60, Tier{}}, false},
		"llama-4-maverick:free":                 {524288, 16384, EncodingO200k, Price{}, false},
		"claude-sonnet-4-5[1m]":                 {200000, 64000, EncodingO200k, Price{3, 0.3, 3.75, 15, Tier{}}, false},
		"openrouter/openai/gpt-oss-120b:exacto": {131072, 32768, EncodingO200k, Price{}, false},
	} {
		if got, known := (Table{}).Lookup(name); got != want || known == "" {
			t.Errorf("%s is %+v, %q; want %+v", name, got, known, want)
		}
	}
}

func TestUnknownModels(t *testing.T) {
	for _, name := range []string{
		"", "/", "-", ":", "-latest", "gpt", "gpt-4o-audio-preview", "gpt-4o-2024-13", "gpt-4ox", "xgpt-4o", "gpt-4o-my-very-own",
		"claude-2.1", "gpt-4o-12", "gpt-4o-", "gpt-4o/", "local", "@20250514", "-2024-08-06", "gpt-3.5-turbo-instruct",
		"a secret that a client sent gpt-4", "gpt-4o\t128000", "gpt-4o\n", "# What is published of models", "llama*", "qwen*",
		strings.Repeat("x", maxName) + "/gpt-4o", strings.Repeat("-latest", 30),
		"qwen" + strings.Repeat("1p", 1<<20), // would take minutes to fold
	} {
		want := Fallback()
		if strings.HasSuffix(name, "*") {
			want.Encoding = EncodingCL100k
		}
		if got, known := (Table{}).Lookup(name); got != want || known != "" {
			t.Errorf("%q is %+v, %q", name, got, known)
		}
	}
}

// TestFamilies checks that an unknown model of a known family has the family's encoding.
func TestFamilies(t *testing.T) {
	for name, want := range map[string]string{
		"qwen2-7b": EncodingCL100k, "Qwen/Qwen9": EncodingCL100k, "llama9:70b": EncodingCL100k, "meta-llama-9": EncodingCL100k,
		"gpt-9": EncodingO200k, "claude-opus-9": EncodingO200k, "mistral-9": EncodingO200k, "unheard-of": EncodingO200k,
	} {
		if got, known := (Table{}).Lookup(name); got.Encoding != want || known != "" {
			t.Errorf("%s is counted in %s, and known as %q", name, got.Encoding, known)
		}
	}
}

func TestConfigured(t *testing.T) {
	own := Info{ContextWindow: 1000, MaxOutput: 100, Encoding: EncodingCL100k}
	table := Table{Configured: map[string]Info{"My.Model": own, "gpt-4o": own, "b/Twice": own, "a/twice": own}}
	for name, want := range map[string]string{
		"My.Model": "My.Model", "openrouter/org/my-model:free": "My.Model", "my-model-20250101": "My.Model",
		"gpt-4o-2024-05-13": "gpt-4o", "azure/gpt-4o": "gpt-4o", "c/twice": "a/twice",
		"gpt-4o-mini": "", "my-model-x": "",
	} {
		info, known := table.Lookup(name)
		if want == "" && info == own || want != "" && (info != own || known != want) {
			t.Errorf("%s is known as %q, %+v", name, known, info)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Table{}.Lookup("openrouter/openai/gpt-4.1-mini-2025-04-14")
	}
}
