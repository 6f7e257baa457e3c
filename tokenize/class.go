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

// classes gives the class of any rune: a table for ASCII, and pages of 256 runes, shared where they are equal, for all.
type classes struct {
	ascii [utf8.RuneSelf]class
	page  [(unicode.MaxRune + 1) / 256]uint16
	pages [][256]class
}

// newClasses builds the table from package unicode.
func newClasses() *classes {
	flat := make([]class, unicode.MaxRune+1)
	for i := range flat {
		flat[i] = symbol
	}
	paint(flat, unicode.White_Space, blank)
	paint(flat, unicode.N, number)
	paint(flat, unicode.M, mark)
	paint(flat, unicode.Lu, upper)
	paint(flat, unicode.Lt, upper)
	paint(flat, unicode.Ll, lower)
	paint(flat, unicode.Lm, caseless)
	paint(flat, unicode.Lo, caseless)
	flat['\r'], flat['\n'] = newline, newline
	return pack(flat)
}

func paint(flat []class, table *unicode.RangeTable, c class) {
	for _, r := range table.R16 {
		for i := int(r.Lo); i <= int(r.Hi); i += int(r.Stride) {
			flat[i] = c
		}
	}
	for _, r := range table.R32 {
		for i := int(r.Lo); i <= int(r.Hi); i += int(r.Stride) {
			flat[i] = c
		}
	}
}

func pack(flat []class) *classes {
	c := &classes{}
	copy(c.ascii[:], flat)
	seen := map[[256]class]uint16{}
	for i := range c.page {
		page := [256]class(flat[i*256:])
		at, ok := seen[page]
		if !ok {
			at = uint16(len(c.pages)) //nolint:gosec // Unicode ends below
			seen[page] = at
			c.pages = append(c.pages, page)
		}
		c.page[i] = at
	}
	return c
}

// at is the class and the size of the rune at text[i]; 0, 0 at the end.
func (c *classes) at(text string, i int) (class, int) {
	if i >= len(text) {
		return 0, 0
	}
	if b := text[i]; b < utf8.RuneSelf {
		return c.ascii[b], 1
	}
	return c.wide(text[i:])
}

// wide is at for a rune beyond ASCII.
func (c *classes) wide(text string) (class, int) {
	r, size := utf8.DecodeRuneInString(text)
	return c.pages[c.page[r>>8]][r&255], size
}

// run is the end of the runes of a set that start at i.
func (c *classes) run(text string, i int, set class) int {
	for i < len(text) {
		b := text[i]
		if b < utf8.RuneSelf {
			if c.ascii[b]&set == 0 {
				return i
			}
			i++
			continue
		}
		found, size := c.wide(text[i:])
		if found&set == 0 {
			return i
		}
		i += size
	}
	return i
}
