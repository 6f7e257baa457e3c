package overflow

import (
	"regexp"
	"strconv"
	"strings"
)

// row is one way to say it. Its words are what is looked for in an error's text, which is in lower case, without
// backslashes, and with single spaces. In them
//
//	{limit} {prompt} {output} {total} {_}  are numbers, with or without commas; {prompt+} is a lower bound,
//	*                                      is anything, up to 200 bytes of it.
//
// The words begin with plain text. A text that also says what is in but is something else.
type row struct {
	words string
	but   string
}

// find looks for the row's words in a text, and tells where they begin.
func (r row) find(text string) (c counts, at int, ok bool) {
	if r.but != "" && strings.Contains(text, r.but) || !strings.Contains(text, r.start()) {
		return counts{}, 0, false
	}
	pattern, names := r.pattern()
	found := pattern.FindStringSubmatchIndex(text)
	if found == nil {
		return counts{}, 0, false
	}
	for i, name := range names {
		c.add(name, number(digits(text[found[2*i+2]:])))
	}
	return c, found[0], true
}

// start is what the words begin with, before their first number or star.
func (r row) start() string {
	if i := strings.IndexAny(r.words, "{*"); i >= 0 {
		return r.words[:i]
	}
	return r.words
}

// pattern is the words as a regular expression, and the names of its numbers.
func (r row) pattern() (pattern *regexp.Regexp, names []string) {
	parts := regexp.MustCompile(`\\\{[^}]*\}|\\\*`)
	expression := parts.ReplaceAllStringFunc(regexp.QuoteMeta(r.words), func(part string) string {
		if part == `\*` {
			return `.{0,200}?`
		}
		names = append(names, strings.Trim(strings.ReplaceAll(part, `\`, ""), "{}"))
		return `(\d+(?:,\d{3})*)`
	})
	return regexp.MustCompile(expression), names
}

// maxCount is the most tokens that a count is believed to be. Above it the text is no count.
const maxCount = 1 << 30

// digits are those of the number that a text begins with, without the commas between groups of three. Digits and letters may follow a
// comma or a number at once that are no part of it.
func digits(text string) string {
	groups := strings.Split(text[:len(text)-len(strings.TrimLeft(text, "0123456789,"))], ",")
	n := 1
	for n < len(groups) && len(groups[n]) == 3 {
		n++
	}
	return strings.Join(groups[:n], "")
}

// number reads a number; one that no count can be is 0.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > maxCount {
		return 0
	}
	return n
}

// counts is what the words of an error say in numbers. The zero of each is: not said.
type counts struct {
	limit, prompt, output int
	total                 int // prompt and output together
	atLeast               bool
}

// add adds a number under the name that a row has for it. A prompt told in parts is their sum.
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
