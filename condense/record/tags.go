package record

import (
	"iter"
	"slices"
	"strings"
)

// tag is an opening or closing tag in a text.
type tag struct {
	name     string // as it was asked for
	from, to int
	closes   bool
}

// tags are those without attributes whose name is one of names, in upper or lower case. Anything that a client sends is looked through, and
// more than once for a request: a regular expression takes fifty times as long.
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
			i := slices.IndexFunc(names, func(name string) bool { return len(name) == end && strings.EqualFold(name, rest[:end]) })
			if i < 0 {
				continue
			}
			if to := len(text) - len(rest) + end + 1; !yield(tag{names[i], at, to, closes}) {
				return
			}
		}
	}
}
