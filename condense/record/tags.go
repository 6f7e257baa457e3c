package record

import (
	"iter"
	"slices"
	"strings"
)

// tag is an opening or closing tag in a text.
type tag struct {
	name     string // as listed in the names searched for
	from, to int
	closes   bool
}

// tags returns the tags in text that have one of the given names, in any case, and no attributes. It runs several times per
// request over everything that a client sends: a regular expression takes fifty times as long.
func tags(text string, names []string) iter.Seq[tag] {
	longest := 0
	for _, name := range names {
		longest = max(longest, len(name))
	}
	return func(yield func(tag) bool) {
		for at := 0; ; at++ {
			n := strings.IndexByte(text[at:], '<')
			if n < 0 {
				return
			}
			at += n
			rest, closes := strings.CutPrefix(text[at+1:], "/")
			end := strings.IndexByte(rest[:min(longest+1, len(rest))], '>')
			i := slices.IndexFunc(names, func(name string) bool {
				return len(name) == end && strings.EqualFold(name, rest[:end])
			})
			if i < 0 {
				continue
			}
			to := len(text) - len(rest) + end + 1
			if !yield(tag{names[i], at, to, closes}) {
				return
			}
		}
	}
}
