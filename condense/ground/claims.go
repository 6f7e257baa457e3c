package ground

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/condense/excerpt"
)

// claim is something that a line names.
type claim struct {
	text     string   // as the line has it
	words    []uint64 // must all have been shown
	pairs    []uint64 // words next to each other
	need     int      // how many of the pairs must have been shown
	integers []uint64 // must all have been shown
	or       []uint64 // or these
	derived  bool     // it is a sum of other numbers in its line
	rounded  *bounds  // or a number between these
	sum      float64  // the number; 0: the claim is none
	hash     int      // length of the abbreviated hash that the word is; 0: it is none
}

// Limits, most of which keep the work linear.
const (
	maxRanges  = 64   // rounded numbers of a record; others are not judged
	maxSummed  = 12   // numbers of a line among which sums are looked for
	minJudged  = 100  // smaller numbers are not judged
	minRounded = 1000 // from here on a number that ends in two zeros may be rounded
	minHash    = 7    // characters of an abbreviated hash
	minQuoted  = 4    // words of a quotation; shorter ones are often the writer's own terms
)

// request enters what a claim asks for.
func (c *claim) request(w *wanted) {
	if c.derived {
		w.derived[c.sum] = true
	}
	for _, h := range slices.Concat(c.words, c.pairs) {
		w.words[h] = false
	}
	if c.hash > 0 {
		w.prefixes[c.hash] = true
	}
	for _, v := range slices.Concat(c.integers, c.or) {
		w.integers[v] = false
	}
	if c.rounded != nil && len(w.ranges) < maxRanges {
		w.ranges = append(w.ranges, c.rounded)
	} else if c.rounded != nil {
		c.rounded.found = true
	}
}

// found reports whether a claim was found.
func (c *claim) found(w *wanted) bool {
	if c.sum > 0 && w.derived[c.sum] {
		return true
	}
	if c.rounded != nil || len(c.integers) > 0 {
		return c.rounded != nil && c.rounded.found || all(w.integers, c.integers) || all(w.integers, c.or)
	}
	return count(w.words, c.words) == len(c.words) && count(w.words, c.pairs) >= c.need
}

func all(found map[uint64]bool, wanted []uint64) bool {
	return len(wanted) > 0 && count(found, wanted) == len(wanted)
}

func count(found map[uint64]bool, wanted []uint64) (n int) {
	for _, h := range wanted {
		if found[h] {
			n++
		}
	}
	return n
}

// claimsOf returns what a line names. before has numbers of the lines before it; those for the next line are returned.
func claimsOf(line string, before []float64) (claims []claim, after []float64) {
	add := func(c claim, ok bool) {
		if ok {
			claims = append(claims, c)
		}
	}
	for field := range strings.FieldsSeq(line) {
		if isPattern(field) || hasAccents(field) {
			continue
		}
		for name := range excerpt.Names(field) {
			if !isWellKnown(name) {
				add(nameClaim(name))
			}
		}
	}
	for _, q := range quotations(line) {
		if q.code && !strings.ContainsAny(q.text, " \t") {
			add(nameClaim(q.text))
		} else {
			add(quoteClaim(q.text))
		}
	}
	counts, numbers := numberClaims(line)
	after = derive(counts, numbers, before)
	return append(claims, counts...), after
}

// isPattern reports whether a field is a pattern, is abbreviated or has a placeholder, so that it stands for other texts.
func isPattern(field string) bool {
	return strings.ContainsAny(field, "*<{$…") || strings.Contains(field, "...")
}

// hasAccents reports whether a field has Latin letters beyond ASCII, or combining marks, at which excerpt.Names would split it.
func hasAccents(field string) bool {
	return strings.ContainsFunc(field, func(r rune) bool {
		return r >= utf8.RuneSelf && (unicode.Is(unicode.Latin, r) || unicode.Is(unicode.Mn, r))
	})
}

// nameClaim returns the claim of a name: all of its words were shown, and those that a hyphen or the dot of an extension or a version
// joins were shown next to each other. Directories and files, or types and methods, may have been shown apart.
func nameClaim(name string) (c claim, ok bool) {
	name = withoutPosition(name)
	if name == "" || isPattern(name) || isMeasure(name) || isList(name) {
		return c, false
	}
	if isHash(name) && len(name) >= minHash {
		hash := uint64(hashOffset)
		for i := range len(name) {
			hash = mix(hash, rune(name[i]|0x20))
		}
		return claim{words: []uint64{prefixOf(hash)}, hash: len(name), text: name}, true
	}
	var last word
	words(name, func(w word) {
		if w.foreign {
			return
		}
		if last.to > 0 && isJoined(name, last, w) {
			c.pairs = append(c.pairs, pairOf(last.hash, w.hash))
		}
		scheme := strings.HasPrefix(name[w.to:], "://")
		if !scheme {
			c.words = append(c.words, w.hash)
		}
		last = w
	})
	c.need, c.text = len(c.pairs), name
	return c, len(c.words) > 0
}

// withoutPosition returns a name without the numbers of lines behind it, which are judged as numbers.
func withoutPosition(name string) string {
	at := strings.LastIndexByte(name, ':')
	if at > 0 && strings.Trim(name[at:], ":0123456789,-–L") == "" {
		return withoutPosition(name[:at])
	}
	return name
}

// isMeasure reports whether a name is a number, maybe with a unit or with what it counts, such as "17.8k" or "411-line". Its number is
// judged as a number.
func isMeasure(name string) bool {
	if !isDigit(name[0]) {
		return false
	}
	n := numberAt(name, 0)
	counted := strings.TrimLeft(name[n.end:], "-")
	return !n.followed && (counted == "" || len(counted) < len(name[n.end:])) && strings.Trim(counted, "-abcdefghijklmnopqrstuvwxyz") == ""
}

// isList reports whether a name is a list of words between slashes, such as "linux/mac/windows", which looks like a path.
func isList(name string) bool {
	return strings.Contains(name, "/") && name[0] != '/' && strings.Trim(name, "/-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// isJoined reports whether two successive words of a name belong together.
func isJoined(name string, a, b word) bool {
	if b.from != a.to+1 {
		return false
	}
	switch name[a.to] {
	case '-':
		return true
	case '.':
		end := b.to == len(name) || strings.IndexByte("/:", name[b.to]) >= 0
		return isDigit(name[b.from]) && isDigit(name[b.to-1]) || end && excerpt.HasExtension(name[a.from:b.to])
	}
	return false
}

// isHash reports whether a text is a hexadecimal number with digits and letters.
func isHash(text string) bool {
	digits, letters := 0, 0
	for i := range len(text) {
		switch c := text[i] | 0x20; {
		case isDigit(text[i]):
			digits++
		case 'a' <= c && c <= 'f':
			letters++
		default:
			return false
		}
	}
	return digits > 0 && letters > 0
}

// prefixOf returns the hash that stands for the beginning of a hash.
func prefixOf(hash uint64) uint64 { return mix(hash, '#') }

// quoteClaim returns the claim of a quotation: two thirds of its neighbouring words were shown so. Writers shorten what they quote.
func quoteClaim(text string) (c claim, ok bool) {
	text = withoutPlaceholders(text)
	var last word
	n := 0
	words(text, func(w word) {
		if !w.foreign {
			n++
		}
		if last.to > 0 && !w.foreign && !last.foreign {
			c.pairs = append(c.pairs, pairOf(last.hash, w.hash))
		}
		last = w
	})
	c.need, c.text = (len(c.pairs)+1)/2, text
	return c, n >= minQuoted && len(c.pairs) > 0
}

// withoutPlaceholders returns a text without what stands in angle brackets.
func withoutPlaceholders(text string) string {
	var out strings.Builder
	for {
		before, rest, opened := strings.Cut(text, "<")
		_, after, closed := strings.Cut(rest, ">")
		if !opened || !closed {
			return out.String() + text
		}
		out.WriteString(before)
		text = after
	}
}

// quotation is a quoted text.
type quotation struct {
	text string
	code bool // between backticks
}

// maxQuotation is the maximum length of a quotation, in bytes.
const maxQuotation = 400

// quotations returns the quoted texts of a line.
func quotations(line string) (found []quotation) {
	before := ' '
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRuneInString(line[i:])
		closing := closingOf(r)
		if closing == "" || unicode.IsLetter(before) || unicode.IsDigit(before) {
			before = r
			i += size
			continue
		}
		from := i + size
		n := strings.Index(line[from:min(len(line), from+maxQuotation)], closing)
		if n <= 0 {
			before = r
			i += size
			continue
		}
		found = append(found, quotation{text: line[from : from+n], code: r == '`'})
		i = from + n + len(closing)
		before = ' '
	}
	return found
}

// closingOf returns the quote that closes what another opens, or "" if it opens nothing.
func closingOf(r rune) string {
	switch r {
	case '"', '`':
		return string(r)
	case '“', '„':
		return "”"
	case '«':
		return "»"
	case '「':
		return "」"
	}
	return ""
}

// numberClaims returns the claims of the numbers of a line that are judged, and all numbers of the line.
func numberClaims(line string) (claims []claim, numbers []float64) {
	for i := 0; i < len(line); {
		if !isDigit(line[i]) {
			i++
			continue
		}
		n := numberAt(line, i)
		if end, dotted := versionEnd(line, n); dotted {
			if c, ok := nameClaim(line[i:end]); ok && !isPartOfWord(line, i) {
				claims = append(claims, c)
			}
			i = end
			continue
		}
		if !isPartOfWord(line, i) {
			if c, judged := numberClaim(line, n); judged {
				c.sum, c.text = n.value, line[n.from:n.end]
				claims = append(claims, c)
			}
			numbers = append(numbers, n.value)
		}
		i = n.to
	}
	return claims, numbers
}

// isPartOfWord reports whether the digit at i follows a letter or another digit.
func isPartOfWord(line string, i int) bool {
	r, _ := utf8.DecodeLastRuneInString(line[:i])
	return i > 0 && (r == '_' || unicode.Is(unicode.Latin, r) || unicode.IsDigit(r))
}

// versionEnd returns the end of a version or an address, which has at least two dots between digits.
func versionEnd(line string, n number) (end int, dotted bool) {
	dots := 0
	end = digitsFrom(line, n.from)
	for end+1 < len(line) && line[end] == '.' && isDigit(line[end+1]) {
		end = digitsFrom(line, end+1)
		dots++
	}
	return end, dots >= 2
}

// numberClaim returns the claim of a number. It reports false if the number is not judged: it is small, a share, about right or part of
// a word.
func numberClaim(line string, n number) (c claim, judged bool) {
	switch {
	case n.percent || n.openEnded || n.followed || n.value < minJudged && (n.scale == 0 || n.measured) || isAbout(line[:n.from]):
		return c, false
	case n.to-n.from > maxDigits && !n.grouped:
		return nameClaim(line[n.from:n.to])
	case !n.precise:
		low, high := n.bounds()
		c.rounded = &bounds{low: low, high: high}
	case n.value >= minRounded && math.Mod(n.value, minJudged) == 0:
		n.half = minJudged / 2
		low, high := n.bounds()
		c.rounded = &bounds{low: low, high: high}
	default:
		c.integers = []uint64{uint64(n.value)}
	}
	if n.grouped && (digitsFrom(line, n.from) == n.from+3 || n.from > 0 && strings.IndexByte(":-,", line[n.from-1]) >= 0) { // maybe a list
		for digits := range strings.FieldsFuncSeq(line[n.from:n.to], func(r rune) bool { return r < '0' || r > '9' }) {
			if v := numberAt(digits, 0).value; v >= minJudged {
				c.or = append(c.or, uint64(v))
			}
		}
	}
	return c, true
}

// maxBefore is how much of what stands before a number is read, in bytes.
const maxBefore = 24

// isAbout reports whether what stands before a number says that it is not exact.
func isAbout(before string) bool {
	before = strings.TrimRight(before[max(len(before)-maxBefore, 0):], " $€£*_`")
	if strings.TrimRight(before, "~≈<>≤≥") != before {
		return true
	}
	word := before[strings.LastIndexAny(before, " (")+1:]
	return slices.Contains([]string{"about", "around", "over", "nearly", "almost", "approximately", "roughly", "under", "than", "least", "most",
		"circa", "approx.", "ca."}, strings.ToLower(word))
}

// derive marks the claims whose number is a sum or a difference of two others in the line or shortly before it, or the sum of all others in
// the line. It returns the numbers before the next line.
func derive(claims []claim, line, before []float64) []float64 {
	line = line[:min(len(line), maxSummed)]
	near := append(before, line...)
	near = near[max(len(near)-2*maxSummed, 0):]
	total := 0.0
	for _, v := range line {
		total += v
	}
	for i := range claims {
		if c := &claims[i]; c.sum > 0 {
			c.derived = len(line) > 2 && isSame(total-c.sum, c.sum) || isDerived(c.sum, near)
		}
	}
	return slices.Clip(near)
}

// isDerived reports whether a value is the sum or the difference of two of the values, neither of which is itself or 0.
func isDerived(value float64, values []float64) bool {
	for i, a := range values {
		for _, b := range values[i+1:] {
			if a > 0 && b > 0 && (isSame(a+b, value) || isSame(math.Abs(a-b), value)) {
				return true
			}
		}
	}
	return false
}

// isSame compares sums of decimals.
func isSame(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

// isWellKnown reports whether a name is that of a well-known product or format, which a writer need not have seen.
func isWellKnown(name string) bool {
	first, _, _ := strings.Cut(name, "-")
	switch strings.ToLower(first) {
	case "github", "gitlab", "javascript", "typescript", "coffeescript", "postgresql", "mysql", "sqlite", "sqlite3", "mongodb", "openai", "chatgpt",
		"macos", "ios", "latex", "youtube", "linkedin", "pypi", "numpy", "scipy", "graphql", "dynamodb", "nosql", "websocket", "websockets",
		"oauth2", "fastapi", "pytorch", "tensorflow", "node.js", "next.js", "vue.js", "powershell", "readme.md", "sha256", "sha512", "base64", "grpc", "http2", "json5", "ecmascript", "es2015", "x86_64",
		"python3", "openapi", "jetbrains", "intellij", "devops", "wordpress", "opentelemetry":
		return true
	}
	return false
}
