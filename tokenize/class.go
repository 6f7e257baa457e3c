package tokenize

import (
	"unicode"
	"unicode/utf8"
)

// class is the character class of a rune, as far as the splitting patterns distinguish them. Each is one bit, so that a set is a
// mask. 0 is the end of the text.
type class uint8

const (
	upper    class = 1 << iota // Lu, Lt
	lower                      // Ll
	caseless                   // Lm, Lo: in both the upper and the lower class of o200k
	mark                       // M
	number                     // N
	newline                    // CR, LF
	blank                      // any other white space
	symbol                     // the rest
)

const (
	letter = upper | lower | caseless
	space  = newline | blank
)

// classes holds the class of each rune.
type classes []class

// newClasses builds the table from the tables of package unicode.
func newClasses() classes {
	c := make(classes, unicode.MaxRune+1)
	for i := range c {
		c[i] = symbol
	}
	c.set(unicode.White_Space, blank)
	c.set(unicode.N, number)
	c.set(unicode.M, mark)
	c.set(unicode.Lu, upper)
	c.set(unicode.Lt, upper)
	c.set(unicode.Ll, lower)
	c.set(unicode.Lm, caseless)
	c.set(unicode.Lo, caseless)
	c['\r'], c['\n'] = newline, newline
	return c
}

// set sets the class of all runes in a Unicode table.
func (c classes) set(table *unicode.RangeTable, to class) {
	for _, r := range table.R16 {
		for i := int(r.Lo); i <= int(r.Hi); i += int(r.Stride) {
			c[i] = to
		}
	}
	for _, r := range table.R32 {
		for i := int(r.Lo); i <= int(r.Hi); i += int(r.Stride) {
			c[i] = to
		}
	}
}

// at returns the class and the size of the rune at text[i], or 0, 0 at the end.
func (c classes) at(text string, i int) (class, int) {
	if i >= len(text) {
		return 0, 0
	}
	if b := text[i]; b < utf8.RuneSelf {
		return c[b], 1
	}
	r, size := utf8.DecodeRuneInString(text[i:])
	return c[r], size
}

// run returns the end of the run of runes in a set that starts at i.
func (c classes) run(text string, i int, set class) int {
	for {
		found, size := c.at(text, i)
		if found&set == 0 {
			return i
		}
		i += size
	}
}
