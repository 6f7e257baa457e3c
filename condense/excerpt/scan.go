package excerpt

import (
	"iter"
	"strings"
)

// Bounds of a term, in bytes.
const (
	minTerm = 3
	maxTerm = 120
)

// Classes of bytes.
const (
	joint uint8 = 1 << iota // part of a term, but not its last byte
	digit
	lower
	upper
	underscore
	separator = 0
	inWord    = digit | lower | upper | underscore
)

// joints lists the bytes of class joint.
const joints = ".-/~@+"

// classes returns the class of each byte. Bytes that are not ASCII are separators.
func classes() (table [256]uint8) {
	for c := range table {
		switch {
		case '0' <= c && c <= '9':
			table[c] = digit
		case 'a' <= c && c <= 'z':
			table[c] = lower
		case 'A' <= c && c <= 'Z':
			table[c] = upper
		case c == '_':
			table[c] = underscore
		case strings.IndexByte(joints, byte(c)) >= 0:
			table[c] = joint
		}
	}
	return table
}

// scanner finds terms: paths and their base names, URLs, identifiers, ids, hashes, the names of errors, and numbers.
type scanner struct {
	class [256]uint8
	emit  func(term string, number bool)
}

// scan emits the terms of a line. It takes time linear in its length.
func (s *scanner) scan(line string) {
	for i := 0; i < len(line); {
		if s.class[line[i]] == separator {
			i++
			continue
		}
		from := i
		var all uint8 // classes of the bytes, combined
		for ; i < len(line) && s.class[line[i]] != separator; i++ {
			all |= s.class[line[i]]
		}
		switch {
		case i < len(line) && line[i] == ':' && strings.HasPrefix(line[i:], "://"):
			i = s.url(line, from, i)
		case all != lower && i-from >= minTerm:
			s.field(line[from:i])
		}
	}
}

// url emits the URL whose scheme is line[from:colon] and returns the index of its end.
func (s *scanner) url(line string, from, colon int) int {
	end := strings.IndexAny(line[colon:], " \t\r\n\"'<>()[]{}|\\`,;")
	if end < 0 {
		end = len(line) - colon
	}
	end += colon
	if end > colon+len("://") && end-from <= 2*maxTerm {
		s.emit(strings.TrimRight(line[from:end], ".:!?*_-"), false)
	}
	return end
}

// literals emits the quoted texts of a line that contain spaces, which scan does not find.
func (s *scanner) literals(line string) {
	for i := 0; i < len(line); i++ {
		quote := line[i]
		if quote != '"' && quote != '\'' && quote != '`' || i > 0 && s.class[line[i-1]]&inWord != 0 {
			continue
		}
		n := strings.IndexByte(line[i+1:min(len(line), i+1+maxTerm)], quote)
		if n < minTerm {
			continue
		}
		if text := line[i+1 : i+1+n]; strings.IndexByte(text, ' ') > 0 && text[n-1] != ' ' {
			s.emit(text, false)
			i += n + 1
		}
	}
}

// Names iterates over the terms of a text but for numbers and quoted texts: paths and their base names, URLs, identifiers, ids, hashes
// and the names of errors.
func Names(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		more := true
		s := &scanner{class: classes()}
		s.emit = func(term string, number bool) { more = more && (number || yield(term)) }
		s.scan(text)
	}
}

// FirstURL returns the first URL in a text, or "" if there is none. It reads only the beginning of a long text.
func FirstURL(text string) string {
	const maxBytes = 16 << 10
	first := ""
	s := &scanner{class: classes(), emit: func(term string, _ bool) {
		if first == "" && strings.Contains(term, "://") {
			first = term
		}
	}}
	s.scan(text[:min(len(text), maxBytes)])
	return first
}

// field emits the terms of a text without separators.
func (s *scanner) field(f string) {
	f = strings.TrimLeft(strings.TrimRight(f, joints), "-+@")
	if len(f) < minTerm || len(f) > maxTerm {
		return
	}
	slash := strings.LastIndexByte(f, '/')
	if slash < 0 {
		s.words(f)
		return
	}
	rooted := f[0] == '/' || f[0] == '~' || f[0] == '.'
	if !rooted && strings.IndexByte(f, '/') == slash && !HasExtension(f) {
		s.words(f) // either/or
		return
	}
	if shape := s.measure(f); shape.letters > 0 && !strings.HasPrefix(f, "//") {
		s.emit(f, false)
		s.word(f[slash+1:])
	}
}

// words emits the terms of the parts of a field.
func (s *scanner) words(f string) {
	for w := range strings.FieldsFuncSeq(f, func(r rune) bool { return strings.ContainsRune("/@+~", r) }) {
		s.word(w)
	}
}

// word emits a word, and the identifiers in a dotted one.
func (s *scanner) word(w string) {
	w = strings.Trim(w, joints)
	if len(w) < minTerm {
		return
	}
	shape := s.measure(w)
	switch {
	case shape.letters == 0:
		if shape.digits >= 3 {
			s.emit(w, true)
		}
		return
	case !shape.isName(w) && !HasExtension(w) && !isErrno(w):
		return
	}
	s.emit(w, false)
	if !shape.dots || !shape.camelCase && !shape.snakeCase {
		return
	}
	for part := range strings.SplitSeq(w, ".") {
		if len(part) >= minTerm && s.measure(part).isName(part) {
			s.emit(part, false)
		}
	}
}

// shape describes the characters of a word.
type shape struct {
	letters, digits int
	camelCase       bool // an upper-case letter follows a lower-case one
	snakeCase       bool // an underscore stands between other characters
	dots            bool
}

func (s *scanner) measure(w string) (m shape) {
	var before uint8
	for i := range len(w) {
		c := s.class[w[i]]
		switch c {
		case digit:
			m.digits++
		case lower:
			m.letters++
		case upper:
			m.letters++
			m.camelCase = m.camelCase || before == lower
		case underscore:
			m.snakeCase = m.snakeCase || m.letters > 0 && i < len(w)-1
		default:
			m.dots = m.dots || w[i] == '.'
		}
		before = c
	}
	return m
}

// isName reports whether the word w, of this shape, is an identifier or an id.
func (m shape) isName(w string) bool {
	return m.letters > 0 && (m.camelCase || m.snakeCase || m.digits >= 2 && len(w) >= 5 || m.dots && isDotted(w))
}

// isDotted reports whether w is a dotted name such as os.path.
func isDotted(w string) bool {
	for part := range strings.SplitSeq(w, ".") {
		if len(part) < 2 || part[0] < 'A' || strings.IndexByte(part, '-') >= 0 {
			return false
		}
	}
	return true
}

// isErrno reports whether w is the name of a common system error or signal.
func isErrno(w string) bool {
	switch w {
	case "ENOENT", "EACCES", "EPERM", "EEXIST", "EAGAIN", "EBUSY", "EINVAL", "EISDIR", "ENOTDIR", "ENOTEMPTY", "ENOSPC", "EPIPE", "EMFILE",
		"ENOMEM", "ETIMEDOUT", "ECONNREFUSED", "ECONNRESET", "EADDRINUSE", "ENOTFOUND", "SIGKILL", "SIGTERM", "SIGSEGV", "SIGINT", "SIGABRT":
		return true
	}
	return false
}

// HasExtension reports whether w ends in the extension of a common type of file.
func HasExtension(w string) bool {
	dot := strings.LastIndexByte(w, '.')
	if dot < 1 || len(w)-dot > 9 || w[dot-1] == '/' {
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
