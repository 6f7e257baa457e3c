package retention

import (
	"regexp"
	"strings"
	"unicode"
)

// Bounds of a reference, in bytes.
const (
	minReference = 3
	maxReference = 120
)

// rule finds what its pattern's only group matches. What a rule took, those after it do not see.
type rule struct {
	pattern *regexp.Regexp
	is      func(match string) bool // it is a reference
}

const (
	urlPattern   = `(\b[a-z][a-z0-9+.-]*://[^\s"'<>()\[\]{}|\\` + "`" + `,;]*[\w/])`
	pathPattern  = `(?:^|[^\w./@~+-])((?:~|\.{1,2})?/\w[\w.@+-]*(?:/[\w.@+-]+)*|[\w.@+-]+(?:/[\w.@+-]+){2,}|[\w.@+/-]*\w\.[A-Za-z]{1,10})\b`
	errorPattern = `\b([A-Z]\w*(?:Error|Exception|Warning)|ERR_\w+|SIG[A-Z]{3,}|E(?:NOENT|ACCES|PERM|EXIST|AGAIN|BUSY|INVAL|ISDIR|` +
		`NOTDIR|NOTEMPTY|NOSPC|PIPE|MFILE|NOMEM|TIMEDOUT|CONNREFUSED|CONNRESET|ADDRINUSE|NOTFOUND|RESOLVE))\b`
	wordPattern    = `(\w+(?:[.-]\w+)*)`
	literalPattern = `(?:^|\W)(?:"([^"\n]+)"|'([^'\n]+)'|` + "`([^`\n]+)`" + `)(?:$|\W)`
)

var rules = []rule{
	{regexp.MustCompile(urlPattern), always},
	{regexp.MustCompile(pathPattern), isPath},
	{regexp.MustCompile(errorPattern), always},
	{regexp.MustCompile(wordPattern), isIdentifier},
	{regexp.MustCompile(literalPattern), isLiteral},
}

func always(string) bool { return true }

// references gives the references in text, exact values that it names: each once, rule by rule.
func references(text string) []string {
	var out []string
	seen := map[string]bool{}
	left := []byte(text)
	for i, r := range rules {
		if i == len(rules)-1 {
			left = []byte(text) // a literal may hold anything
		}
		for _, m := range r.pattern.FindAllSubmatchIndex(left, -1) {
			from, to := group(m)
			found := strings.TrimRight(text[from:to], ".-+")
			if !r.is(found) || len(found) < minReference || len(found) > maxReference {
				continue
			}
			for j := from; j < to; j++ {
				left[j] = ' '
			}
			if !seen[found] {
				seen[found] = true
				out = append(out, found)
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

// isPath tells paths from words with a slash or a point in them: a lone name needs a known ending.
func isPath(m string) bool {
	if !strings.ContainsFunc(m, unicode.IsLetter) || strings.Contains(m, "..") && !strings.HasPrefix(m, "..") {
		return false
	}
	rooted := m[0] == '/' || strings.HasPrefix(m, "~/") || strings.HasPrefix(m, "./") || strings.HasPrefix(m, "../")
	return rooted || strings.Count(m, "/") > 1 || knownEnding(m)
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

// isIdentifier tells identifiers and numbers from ordinary words.
func isIdentifier(w string) bool {
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
	if letters == 0 {
		return digits >= 3
	}
	return hump || joined || digits >= 2 && len(w) >= 5 || dotted(w)
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

// isLiteral takes a quoted text that says something.
func isLiteral(m string) bool { return strings.TrimSpace(m) == m && strings.ContainsFunc(m, isWord) }

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
