package overflow

import (
	"regexp"
	"slices"
	"strings"
)

// figure is a number in a text that may be a count of tokens.
type figure struct {
	n      int
	output bool // it is the length of the answer
	limit  bool // it is named as a limit
	tokens bool // the word for tokens follows it
}

const (
	minFigure  = 256 // a smaller number is no count that matters
	maxFigures = 8   // of a text
	before     = 40  // bytes before a number that say what it is
	after      = 20  // bytes after it
)

// numbers matches numbers with and without separators, and what follows them directly.
var numbers = regexp.MustCompile(`\d{1,3}(?:[ ,.'\x{a0}\x{202f}]\d{3})+\b|\d+(?:\.\d+)*`)

// digitsOnly removes the separators of thousands.
var digitsOnly = strings.NewReplacer(" ", "", ",", "", ".", "", "'", "", "\u00a0", "", "\u202f", "")

// limitBefore are the words before a limit, limitAfter those after it, and bounds those between the name of a sum and its limit.
var (
	limitBefore = slices.Concat(limitWords, excessWords, []string{"window", "context", "n ctx", "seq len", "support", "than", "only", "most", "fit"})
	limitAfter  = []string{"max", "limit", "allowed", "context"}
	bounds      = []string{"<", "less than", "fewer than", "at most", "up to"}
)

// nextWords matches what separates the words about a number from those about the next one.
var nextWords = regexp.MustCompile(`[,;+]|\. | and `)

// figuresOf returns the numbers of a text, in their order.
func figuresOf(text string) (all []figure) {
	found := numbers.FindAllStringIndex(text, 4*maxFigures)
	for i, at := range found {
		n := parseFigure(text, at[0], at[1])
		if n < minFigure || len(all) == maxFigures {
			continue
		}
		from, to := max(0, at[0]-before), min(len(text), at[1]+after)
		if i > 0 {
			from = max(from, found[i-1][1])
		}
		if i+1 < len(found) {
			to = min(to, found[i+1][0])
		}
		f, own := figure{n: n}, nextWords.Split(text[from:at[0]], -1)
		f.classify(own[len(own)-1], nextWords.Split(text[at[1]:to], 2)[0])
		if k := len(all); k > 0 && strings.TrimSpace(text[from:at[0]]) == "+" { // what is added to the prompt is the answer
			f.output = true
		}
		all = append(all, f)
	}
	return all
}

// classify sets the fields of a figure according to the words before and after the number.
func (f *figure) classify(before, after string) {
	f.tokens = strings.HasPrefix(strings.TrimLeft(after, " )-"), "tok")
	out := lastOf(before, outputWords)
	isLimit := out >= 0 && (containsAny(before, excessWords) || containsAny(before[out:], bounds))
	f.output = out >= 0 && !isLimit || containsAny(after, outputWords)
	f.limit = !f.output && (containsAny(before, limitBefore) || containsAny(after, limitAfter))
}

// lastOf returns where the last of any words begins, -1 if there is none.
func lastOf(text string, words []string) int {
	last := -1
	for _, w := range words {
		last = max(last, strings.LastIndex(text, w))
	}
	return last
}

// parseFigure returns the number at a position of a text, 0 if it is no count: part of a name, a date, a version, a share, a
// difference or a status.
func parseFigure(text string, from, to int) int {
	head, rest := text[:from], text[to:]
	if n := len(head); n > 0 {
		switch b := head[n-1]; {
		case isAlphanumeric(b), b == '.', b == '#', b == '@', strings.HasSuffix(head, " by "):
			return 0
		case b == '-' || b == '/' || b == ':':
			if n > 1 && isLetter(head[n-2]) && b != ':' {
				return 0
			}
		}
	}
	digits := text[from:to]
	if strings.Contains(digits, ".") && !thousands.MatchString(digits) {
		return 0
	}
	n := parseCount(digitsOnly.Replace(digits))
	if rest == "" {
		return plausible(n)
	}
	scaled := len(rest) == 1 || !isAlphanumeric(rest[1])
	switch b := rest[0]; {
	case b == 'k' && scaled:
		return parseCount(digitsOnly.Replace(digits) + "000")
	case b == '%', b == '-' && scaledName(rest), isAlphanumeric(b) && !strings.HasPrefix(rest, "tok"):
		return 0
	}
	return plausible(n)
}

// thousands matches a number whose groups of three digits are separated.
var thousands = regexp.MustCompile(`^\d{1,3}(?:\D{1,3}\d{3})+$`)

// scaledName reports whether a number is followed by the rest of a name or of a date.
func scaledName(rest string) bool {
	return len(rest) > 1 && isAlphanumeric(rest[1]) && !strings.HasPrefix(rest[1:], "tok")
}

// plausible returns n, or 0 if it is a status that errors often quote.
func plausible(n int) int {
	switch n {
	case 400, 413, 422, 429, 500, 502, 503:
		return 0
	}
	return n
}

func isLetter(b byte) bool { return 'a' <= b && b <= 'z' }

func isAlphanumeric(b byte) bool { return isLetter(b) || '0' <= b && b <= '9' }

// countsOf says which of the numbers is the input, the answer and the limit. Without an answer the largest is the input, since it is too long.
func countsOf(figures []figure) (c counts) {
	var limits, others []int
	for _, f := range figures {
		switch {
		case f.output:
			c.output = max(c.output, f.n)
		case f.limit:
			limits = append(limits, f.n)
		default:
			others = append(others, f.n)
		}
	}
	all := slices.Concat(limits, others)
	switch {
	case len(all) == 0:
	case len(all) == 1 && len(limits) == 1:
		c.limit = all[0]
	case len(all) == 1:
		c.prompt = all[0]
	case c.output > 0 && len(limits) > 0 && len(others) > 0:
		c.limit, c.prompt = slices.Max(limits), slices.Max(others)
		if slices.Contains(others, c.prompt-c.output) { // the sum is given as well
			c.prompt -= c.output
		}
	default:
		c.prompt = slices.Max(all)
		lower := slices.DeleteFunc(limits, func(n int) bool { return n == c.prompt })
		if len(lower) == 0 {
			lower = slices.DeleteFunc(others, func(n int) bool { return n == c.prompt })
		}
		if len(lower) > 0 {
			c.limit = slices.Max(lower)
		}
	}
	return c
}
