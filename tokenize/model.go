package tokenize

import "strings"

// FallbackEncoding stands in where a model's encoding is not known.
const FallbackEncoding = O200k

// family is the models whose name is stem, or begins with it where open is set. Where open is not set, what follows the
// stem must begin with a sign: "o1" is o1 and o1-mini, not o10.
type family struct {
	stem     string
	open     bool
	encoding string
}

// ForModel returns the name of a model's encoding. A vendor's path ("openai/gpt-4o", "azure/gpt-4o") and the mark of a
// fine-tune ("ft:gpt-4o:team::id") do not matter, nor does case. known is false where the model is not known; the
// encoding is then FallbackEncoding.
func ForModel(model string) (encoding string, known bool) {
	name := strings.ToLower(strings.TrimSpace(model))
	name = name[strings.LastIndexByte(name, '/')+1:]
	name = strings.TrimPrefix(name, "ft:")
	for _, f := range families() {
		if f.has(name) {
			return f.encoding, true
		}
	}
	return FallbackEncoding, false
}

// families lists longer stems before those they begin with.
func families() [20]family {
	return [20]family{
		{"chatgpt-4o", true, O200k},
		{"gpt-4o", true, O200k},
		{"gpt-4.1", true, O200k},
		{"gpt-4.5", true, O200k},
		{"gpt-5", true, O200k},
		{"gpt-oss", true, O200k},
		{"o1", false, O200k},
		{"o3", false, O200k},
		{"o4", false, O200k},
		{"codex-mini", false, O200k},
		{"computer-use-preview", false, O200k},
		{"gpt-4", false, Cl100k},
		{"gpt-3.5", true, Cl100k},
		{"gpt-35", true, Cl100k},
		{"text-embedding-3", true, Cl100k},
		{"text-embedding-ada-002", false, Cl100k},
		{"davinci-002", false, Cl100k},
		{"babbage-002", false, Cl100k},
		{O200k, false, O200k},
		{Cl100k, false, Cl100k},
	}
}

func (f family) has(name string) bool {
	rest, found := strings.CutPrefix(name, f.stem)
	if !found || rest == "" || f.open {
		return found
	}
	return strings.IndexByte("-:@", rest[0]) >= 0
}
