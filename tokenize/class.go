package tokenize

import (
	"unicode"
	"unicode/utf8"
)

// class is what the splitting patterns can tell of a rune: one bit each, so that a set is a mask. No bit at all is the
// end of the text.
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

// classes gives the class of each rune.
type classes []class

// newClasses builds the table from package unicode.
func newClasses() classes {
	c := make(classes, unicode.MaxRune+1)
	for i := range c {
		c[i] = symbol
	}
	for _, of := range []struct {
		class
		tables []*unicode.RangeTable
	}{
		{blank, []*unicode.RangeTable{unicode.White_Space}},
		{number, []*unicode.RangeTable{unicode.N}},
		{mark, []*unicode.RangeTable{unicode.M}},
		{upper, []*unicode.RangeTable{unicode.Lu, unicode.Lt}},
		{lower, []*unicode.RangeTable{unicode.Ll}},
		{caseless, []*unicode.RangeTable{unicode.Lm, unicode.Lo}},
	} {
		for _, table := range of.tables {
			c.paint(table, of.class)
		}
	}
	c['\r'], c['\n'] = newline, newline
	return c
}

func (c classes) paint(table *unicode.RangeTable, as class) {
	for _, r := range table.R16 {
		for i := int(r.Lo); i <= int(r.Hi); i += int(r.Stride) {
			c[i] = as
		}
	}
	for _, r := range table.R32 {
		for i := int(r.Lo); i <= int(r.Hi); i += int(r.Stride) {
			c[i] = as
		}
	}
}

// at is the class and the size of the rune at text[i]; 0, 0 at the end.
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

// run is the end of the runes of a set that start at i.
func (c classes) run(text string, i int, set class) int {
	for {
		found, size := c.at(text, i)
		if found&set == 0 {
			return i
		}
		i += size
	}
}
