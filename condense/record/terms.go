package record

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// termKind is what an exact value looks like.
type termKind uint8

// The kinds, in the order in which a ledger lists them.
const (
	termPath termKind = iota
	termURL
	termID
	termName
	termKinds
	termNone = termKinds
)

// Bounds of a term, in bytes.
const (
	minTerm    = 3
	maxTerm    = 120
	maxURLTerm = 200
)

// scanTerms reports the terms in text, in order, in time linear in its length. Terms are printable and hold no spaces,
// quotes or angle brackets.
func scanTerms(text string, emit func(termKind, string)) {
	for i := 0; i < len(text); {
		n := strings.IndexFunc(text[i:], separates)
		if n < 0 {
			n = len(text) - i
		}
		scanField(text[i:i+n], emit)
		if i += n; i >= len(text) {
			return
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		if text[i] == '`' {
			scanQuoted(text[i+1:], emit)
		}
		i += size
	}
}

// FirstURL is the first URL in the beginning of a text, empty if there is none.
func FirstURL(text string) string {
	const enough = 16 << 10
	first := ""
	scanTerms(text[:min(len(text), enough)], func(kind termKind, url string) {
		if kind == termURL && first == "" {
			first = url
		}
	})
	return first
}

func separates(r rune) bool {
	return r <= ' ' || strings.ContainsRune("\"'`<>\\|", r) || r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r)
}

// scanQuoted reports an identifier in back quotes that no other rule finds. What follows text's start is its content.
func scanQuoted(text string, emit func(termKind, string)) {
	text = text[:min(len(text), maxTerm/2)]
	end := strings.IndexByte(text, '`')
	if end < minTerm {
		return
	}
	if name := text[:end]; classify(name) == termNone && identifier(name) {
		emit(termName, name)
	}
}

func identifier(s string) bool {
	letter := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isLetter(c):
			letter = true
		case isDigit(c) || strings.IndexByte("_.:-/$@#", c) >= 0:
		default:
			return false
		}
	}
	return letter
}

// scanField looks through text without spaces: URLs first, since they hold what separates words elsewhere.
func scanField(field string, emit func(termKind, string)) {
	for {
		at := strings.Index(field, "://")
		if at < 0 {
			break
		}
		start := at
		for start > 0 && isLetter(field[start-1]) && at-start < 12 {
			start--
		}
		scanWords(field[:start], emit)
		end := strings.IndexAny(field[at:], ")]},;")
		if end < 0 {
			end = len(field) - at
		}
		url := strings.TrimRight(field[start:at+end], ".:!?*_")
		if start < at && len(url) > at-start+len("://") && len(url) <= maxURLTerm {
			emit(termURL, url)
		}
		field = field[at+end:]
	}
	scanWords(field, emit)
}

func scanWords(field string, emit func(termKind, string)) {
	for len(field) > 0 {
		n := strings.IndexAny(field, "()[]{},;:=&*!?+$^%")
		if n < 0 {
			n = len(field)
		}
		word := strings.TrimRight(field[:n], ".-")
		if kind := classify(word); kind != termNone {
			emit(kind, word)
		}
		field = field[min(n+1, len(field)):]
	}
}

// classify tells a term's kind by what it is made of, termNone if it is an ordinary word.
func classify(w string) termKind {
	if len(w) < minTerm || len(w) > maxTerm {
		return termNone
	}
	m := measure(w)
	switch {
	case isTicket(w):
		return termID
	case isPath(w, m):
		return termPath
	case m.digits >= 2 && m.letters > 0 && m.joints > 0 && m.plain:
		return termID
	}
	return termNone
}

// measures of a word.
type measures struct {
	letters, digits, slashes int
	joints                   int  // hyphens and underscores
	plain                    bool // letters, digits and joints only
}

func measure(w string) measures {
	m := measures{plain: true}
	for i := 0; i < len(w); i++ {
		c := w[i]
		switch {
		case isLetter(c):
			m.letters++
		case isDigit(c):
			m.digits++
		case c == '-' || c == '_':
			m.joints++
		default:
			m.plain = false
			if c == '/' {
				m.slashes++
			}
		}
	}
	return m
}

// isTicket knows ABC-123 and #123. Names of encodings and algorithms look the same and are in every log.
func isTicket(w string) bool {
	if strings.HasPrefix(w, "#") {
		return len(w) <= 9 && allDigits(w[1:])
	}
	project, number, ok := strings.Cut(w, "-")
	if !ok || len(project) < 2 || len(project) > 10 || len(number) > 8 || !allDigits(number) || project[0] > 'Z' {
		return false
	}
	switch project {
	case "UTF", "SHA", "ISO", "MD", "RFC", "AES", "RSA":
		return false
	}
	return strings.Trim(project, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "" && isLetter(project[0])
}

func isPath(w string, m measures) bool {
	if m.letters == 0 || strings.Contains(w, "//") {
		return false
	}
	if m.slashes > 0 {
		rooted := w[0] == '/' || w[0] == '~' || strings.HasPrefix(w, "./") || strings.HasPrefix(w, "../")
		return rooted || m.slashes > 1 || hasFileExtension(w)
	}
	return hasFileExtension(w)
}

func hasFileExtension(w string) bool {
	dot := strings.LastIndexByte(w, '.')
	if dot < 1 || w[dot-1] == '/' {
		return false
	}
	switch strings.ToLower(w[dot+1:]) {
	case "go", "py", "pyi", "js", "jsx", "ts", "tsx", "mjs", "cjs", "java", "kt", "rs", "c", "h", "cc", "cpp", "hpp", "cs", "rb", "php",
		"swift", "scala", "lua", "pl", "sh", "bash", "zsh", "ps1", "sql", "html", "htm", "css", "scss", "vue", "svelte", "md", "rst", "txt",
		"json", "jsonl", "yaml", "yml", "toml", "ini", "cfg", "conf", "env", "xml", "csv", "tsv", "lock", "mod", "sum", "log", "proto",
		"ipynb", "png", "jpg", "jpeg", "gif", "svg", "pdf", "zip", "tar", "gz", "db", "sqlite", "parquet", "patch", "diff", "tf", "tpl":
		return true
	}
	return false
}

func allDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
