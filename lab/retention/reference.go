package retention

import (
	"regexp"
	"strings"
	"unicode"
)

// Kind is what a reference looks like.
type Kind string

// The kinds.
const (
	URL        Kind = "url"
	Path       Kind = "path"
	Error      Kind = "error"
	Identifier Kind = "identifier"
	Number     Kind = "number"
	Literal    Kind = "literal"
)

// Bounds of a reference, in bytes.
const (
	minReference = 3
	maxReference = 120
)

// Reference is an exact value that a text names.
type Reference struct {
	Kind Kind
	Text string
}

// Extractor finds references. It is safe for concurrent use.
type Extractor struct {
	rules []rule
}

// rule finds what its pattern's only group matches. What a rule took, those after it do not see.
type rule struct {
	pattern *regexp.Regexp
	kind    func(match string) Kind // empty: no reference
}

const (
	urlPattern   = `(\b[a-z][a-z0-9+.-]*://[^\s"'<>()\[\]{}|\\` + "`" + `,;]*[\w/])`
	pathPattern  = `(?:^|[^\w./@~+-])((?:~|\.{1,2})?/\w[\w.@+-]*(?:/[\w.@+-]+)*|[\w.@+-]+(?:/[\w.@+-]+){2,}|[\w.@+/-]*\w\.[A-Za-z]{1,10})\b`
	errorPattern = `\b([A-Z]\w*(?:Error|Exception|Warning)|ERR_\w+|SIG[A-Z]{3,}|E(?:NOENT|ACCES|PERM|EXIST|AGAIN|BUSY|INVAL|ISDIR|` +
		`NOTDIR|NOTEMPTY|NOSPC|PIPE|MFILE|NOMEM|TIMEDOUT|CONNREFUSED|CONNRESET|ADDRINUSE|NOTFOUND|RESOLVE))\b`
	wordPattern    = `(\w+(?:[.-]\w+)*)`
	literalPattern = `(?:^|\W)(?:"([^"\n]+)"|'([^'\n]+)'|` + "`([^`\n]+)`" + `)(?:$|\W)`
)

// NewExtractor gives an extractor.
func NewExtractor() *Extractor {
	return &Extractor{rules: []rule{
		{regexp.MustCompile(urlPattern), always(URL)},
		{regexp.MustCompile(pathPattern), pathKind},
		{regexp.MustCompile(errorPattern), always(Error)},
		{regexp.MustCompile(wordPattern), wordKind},
		{regexp.MustCompile(literalPattern), literalKind},
	}}
}

func always(k Kind) func(string) Kind { return func(string) Kind { return k } }

// References gives the references in text, each once, rule by rule.
func (x *Extractor) References(text string) []Reference {
	var out []Reference
	seen := map[string]bool{}
	left := []byte(text)
	for i, r := range x.rules {
		if i == len(x.rules)-1 {
			left = []byte(text) // a literal may hold anything
		}
		for _, m := range r.pattern.FindAllSubmatchIndex(left, -1) {
			from, to := group(m)
			found := strings.TrimRight(text[from:to], ".-+")
			kind := r.kind(found)
			if kind == "" || len(found) < minReference || len(found) > maxReference {
				continue
			}
			for j := from; j < to; j++ {
				left[j] = ' '
			}
			if !seen[found] {
				seen[found] = true
				out = append(out, Reference{Kind: kind, Text: found})
			}
		}
	}
	return out
}

// group is the bounds of the group that matched.
func group(match []int) (from, to int) {
	for i := 2; i < len(match); i += 2 {
		if match[i] >= 0 {
			return match[i], match[i+1]
		}
	}
	return match[0], match[1]
}

// pathKind tells paths from words with a slash or a point in them: a lone name needs a known ending.
func pathKind(m string) Kind {
	if !strings.ContainsFunc(m, unicode.IsLetter) || strings.Contains(m, "..") && !strings.HasPrefix(m, "..") {
		return ""
	}
	rooted := m[0] == '/' || strings.HasPrefix(m, "~/") || strings.HasPrefix(m, "./") || strings.HasPrefix(m, "../")
	if rooted || strings.Count(m, "/") > 1 || knownEnding(m) {
		return Path
	}
	return ""
}

func knownEnding(name string) bool {
	dot := strings.LastIndexByte(name, '.')
	if dot < 1 {
		return false
	}
	switch strings.ToLower(name[dot+1:]) {
	case "go", "py", "pyi", "js", "jsx", "ts", "tsx", "mjs", "cjs", "java", "kt", "rs", "c", "h", "cc", "cpp", "hpp", "cs", "rb", "php",
		"swift", "lua", "pl", "sh", "sql", "html", "css", "scss", "vue", "svelte", "md", "rst", "txt", "json", "jsonl", "yaml", "yml",
		"toml", "ini", "cfg", "conf", "env", "xml", "csv", "lock", "mod", "sum", "log", "proto", "ipynb", "png", "jpg", "svg", "pdf",
		"zip", "tar", "gz", "db", "sqlite", "patch", "diff":
		return true
	}
	return false
}

// wordKind tells identifiers and numbers from ordinary words.
func wordKind(w string) Kind {
	letters, digits := 0, 0
	hump, joined := false, false
	for i := range len(w) {
		switch c := rune(w[i]); {
		case unicode.IsDigit(c):
			digits++
		case unicode.IsLetter(c):
			letters++
			hump = hump || i > 0 && unicode.IsUpper(c) && unicode.IsLower(rune(w[i-1]))
		case c == '_':
			joined = joined || i > 0 && i < len(w)-1 && letters > 0
		}
	}
	switch {
	case letters == 0 && digits >= 3:
		return Number
	case letters > 0 && (hump || joined || digits >= 2 && len(w) >= 5 || dotted(w)):
		return Identifier
	}
	return ""
}

// dotted knows names such as os.path.
func dotted(w string) bool {
	parts := strings.Split(w, ".")
	for _, p := range parts {
		if len(p) < 2 || !unicode.IsLetter(rune(p[0])) || strings.Contains(p, "-") {
			return false
		}
	}
	return len(parts) > 1
}

// literalKind takes a quoted text that says something.
func literalKind(m string) Kind {
	if strings.TrimSpace(m) != m || strings.IndexFunc(m, isWord) < 0 {
		return ""
	}
	return Literal
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
