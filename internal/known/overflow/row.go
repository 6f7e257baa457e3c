package overflow

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// row is one wording of an error. Its words are searched for in a folded text (see fold). In them
//
//	{limit} {prompt} {output} {total} {_}  match a number, with or without commas; {prompt+} is a lower bound,
//	*                                      matches anything, as little as possible.
//
// The words start with plain text, and the text after a number or a star does not start with a digit, or a comma and a digit.
// A text that contains but, if it is set, does not match.
type row struct {
	words string
	but   string

	pattern *regexp.Regexp // of the words
	names   []string       // of its numbers
}

var placeholder = regexp.MustCompile(`\{([a-z_]+\+?)\}`)

// compile returns a function that returns rows with their patterns, which are compiled in the first call.
func compile(rows []row) func() []row {
	patterns := strings.NewReplacer("\x00", `(\d+(?:,\d{3})*)`, `\*`, ".*?")
	return sync.OnceValue(func() []row {
		for i := range rows {
			r := &rows[i]
			for _, found := range placeholder.FindAllStringSubmatch(r.words, -1) {
				r.names = append(r.names, found[1])
			}
			pattern := patterns.Replace(regexp.QuoteMeta(placeholder.ReplaceAllString(r.words, "\x00")))
			if strings.HasSuffix(r.words, "}") {
				pattern += `(?:\D|$)` // all of the number
			}
			r.pattern = regexp.MustCompile(pattern)
		}
		return rows
	})
}

// find returns the numbers of the first match in text, and where the match starts.
func (r row) find(text string) (c counts, start int, ok bool) {
	prefix, _ := r.pattern.LiteralPrefix()
	if !strings.Contains(text, prefix) || r.but != "" && strings.Contains(text, r.but) {
		return counts{}, 0, false
	}
	at := r.pattern.FindStringSubmatchIndex(text)
	if at == nil {
		return counts{}, 0, false
	}
	for i, name := range r.names {
		c.add(name, parseCount(strings.ReplaceAll(text[at[2*i+2]:at[2*i+3]], ",", "")))
	}
	return c, at[0], true
}

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
