package record

import (
	"regexp"
	"strings"
)

// tag is an opening or closing tag in a text.
type tag struct {
	name     string // in lower case
	from, to int
	closes   bool
}

// tagged matches tags without attributes that have one of some names, in upper or lower case.
func tagged(names ...string) *regexp.Regexp {
	return regexp.MustCompile("<(/?)((?i:" + strings.Join(names, "|") + "))>")
}

// tags are those of a text.
func tags(text string, tagged *regexp.Regexp) (found []tag) {
	for _, at := range tagged.FindAllStringSubmatchIndex(text, -1) {
		found = append(found, tag{name: strings.ToLower(text[at[4]:at[5]]), from: at[0], to: at[1], closes: at[3] > at[2]})
	}
	return found
}
