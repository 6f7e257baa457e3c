package overflow

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// row is one wording of an error. Its words are searched for in a folded text (see fold). In them
//
//	{limit} {prompt} {output} {total} {_}  match a number, with or without commas; {prompt+} is a lower bound,
//	*                                      matches anything, up to maxGap characters.
//
// The words start with plain text, and the text after a number or a star does not start with a digit, or a comma and a digit.
// A text that contains but, if it is set, does not match.
type row struct {
	words string
	but   string
}

// maxGap bounds what a star matches, in characters.
const maxGap = 200

// find returns the numbers of the first match in text, and where the match starts.
func (r row) find(text string) (c counts, start int, ok bool) {
	if r.but != "" && strings.Contains(text, r.but) {
		return counts{}, 0, false
	}
	prefix := plainPrefix(r.words)
	rest := r.words[len(prefix):]
	for {
		i := strings.Index(text[start:], prefix)
		if i < 0 {
			return counts{}, 0, false
		}
		start += i
		if c, ok := match(rest, text[start+len(prefix):], counts{}); ok {
			return c, start, true
		}
		start++
	}
}

// plainPrefix returns the words up to the first number or star.
func plainPrefix(words string) string {
	if i := strings.IndexAny(words, "{*"); i >= 0 {
		return words[:i]
	}
	return words
}

// match reports whether text starts with the words, and returns c with the numbers in them added.
func match(words, text string, c counts) (counts, bool) {
	for words != "" {
		var ok bool
		switch words[0] {
		case '*':
			return matchAfterGap(words[1:], text, c)
		case '{':
			var name string
			var n int
			name, words, _ = strings.Cut(words[1:], "}")
			n, text, ok = cutNumber(text)
			c.add(name, n)
		default:
			plain := plainPrefix(words)
			words = words[len(plain):]
			text, ok = strings.CutPrefix(text, plain)
		}
		if !ok {
			return counts{}, false
		}
	}
	return c, true
}

// matchAfterGap is match with up to maxGap characters of text skipped, as few as possible.
func matchAfterGap(words, text string, c counts) (counts, bool) {
	for range maxGap + 1 {
		if found, ok := match(words, text, c); ok {
			return found, true
		}
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
	}
	return counts{}, false
}

// cutNumber splits text after the number it starts with, which may have commas between groups of three digits.
func cutNumber(text string) (n int, after string, ok bool) {
	end := leadingDigits(text)
	if end == 0 {
		return 0, text, false
	}
	for strings.HasPrefix(text[end:], ",") && leadingDigits(text[end+1:]) == 3 {
		end += len(",000")
	}
	return parseCount(strings.ReplaceAll(text[:end], ",", "")), text[end:], true
}

// leadingDigits returns the number of digits that text starts with.
func leadingDigits(text string) int { return len(text) - len(strings.TrimLeft(text, "0123456789")) }

// maxCount is the largest plausible token count. A larger number is not a count.
const maxCount = 1 << 30

// parseCount parses a token count. It returns 0 for anything that cannot be one.
func parseCount(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > maxCount {
		return 0
	}
	return n
}

// counts holds the numbers in an error's words. 0 means that the error does not give the number.
type counts struct {
	limit, prompt, output int
	total                 int // prompt and output together
	atLeast               bool
}

// add sets the number with the given name in a row. A prompt given in parts is their sum.
func (c *counts) add(name string, n int) {
	switch name {
	case "limit":
		c.limit = n
	case "prompt":
		c.prompt = min(c.prompt+n, maxCount)
	case "prompt+":
		c.prompt, c.atLeast = n, true
	case "output":
		c.output = n
	case "total":
		c.total = n
	}
}

func (c counts) overflow() Overflow {
	o := Overflow{Limit: c.limit, Prompt: c.prompt, AtLeast: c.atLeast, Output: c.output}
	if o.Prompt == 0 && o.Output > 0 && c.total > o.Output {
		o.Prompt = c.total - o.Output
	}
	o.ByOutput = o.Limit > 0 && o.Output > 0 && (o.Output >= o.Limit || o.Prompt > 0 && o.Prompt <= o.Limit/2)
	return o
}
