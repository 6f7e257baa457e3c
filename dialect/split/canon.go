package split

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// canonDepth limits the nesting of JSON that is canonicalized. Sorting moves the members of each level, so the work is at
// most canonDepth times the size.
const canonDepth = 64

// maxParts limits the number of content parts that are canonicalized.
const maxParts = 16 << 10

// canon writes canonical JSON: members sorted by key, no white space, strings as written by rawjson.AppendCanonical, and
// numbers verbatim. Members with the same key keep their order, since most parsers use the last one.
type canon struct {
	buf       []byte // the result
	swap      []byte // scratch space for sorting
	plain     []byte // decoded arguments, or a canonical string
	members   []member
	parts     []part
	format    *Format
	duplicate string // "type" or "text", if a part has it twice
	steps     int    // comparisons and bytes moved in sorting, which is the only work that is not linear in the size
}

// member is a member in buf. Its key, in quotes, is [from, colon). to is behind the comma after its value.
type member struct{ from, colon, to int }

// part is a part of the content of a message.
type part struct {
	from, to   int // in buf
	members    int
	kind, text rawjson.Value
}

// text returns the canonical inside of a string. It is valid until the next use of c.
func (c *canon) text(v rawjson.Value) []byte {
	if v.Escapes != rawjson.Long {
		return v.Inner()
	}
	c.plain = rawjson.AppendCanonical(c.plain[:0], v.Inner())
	return c.plain
}

// json writes a whole text to buf. It returns false if the text is invalid or too deep.
func (c *canon) json(text []byte) bool {
	c.buf, c.members = c.buf[:0], c.members[:0]
	s := rawjson.NewScanner(text, canonDepth)
	c.value(&s)
	return s.End() == nil
}

// arguments writes the JSON inside a string to buf. It returns false if that is not valid JSON, or too deep.
func (c *canon) arguments(inner []byte) bool {
	var exact bool
	c.plain, exact = rawjson.AppendUnquote(c.plain[:0], inner)
	return exact && c.json(c.plain)
}

// list writes an array of content parts to buf and parts. It returns false if the array is too deep or too long.
func (c *canon) list(text []byte) bool {
	c.buf, c.members, c.parts = c.buf[:0], c.members[:0], c.parts[:0]
	s := rawjson.NewScanner(text, canonDepth)
	for s.Array(); s.Element(); {
		if len(c.parts) == maxParts {
			return false
		}
		p := part{from: len(c.buf)}
		if s.Object() {
			c.object(&s, &p)
		} else {
			c.value(&s)
		}
		p.to = len(c.buf)
		if !c.format.Skip(p.kind) {
			c.parts = append(c.parts, p)
		}
	}
	return s.End() == nil
}

// singleText returns the text of the only part, if that is a text part without other members.
func (c *canon) singleText() (rawjson.Value, bool) {
	if len(c.parts) != 1 {
		return rawjson.Value{}, false
	}
	p := &c.parts[0]
	return p.text, p.members == 2 && slices.ContainsFunc(c.format.Texts, p.kind.Is) && p.text.Kind == rawjson.String
}

func (c *canon) value(s *rawjson.Scanner) {
	switch {
	case s.Object():
		c.object(s, nil)
	case s.Array():
		c.array(s)
	default:
		c.scalar(s.Value())
	}
}

func (c *canon) scalar(v rawjson.Value) {
	if v.Escapes == rawjson.Long {
		c.quote(v.Inner())
	} else {
		c.buf = append(c.buf, v.Raw...)
	}
}

func (c *canon) array(s *rawjson.Scanner) {
	c.buf = append(c.buf, '[')
	begin := len(c.buf)
	for s.Element() {
		c.value(s)
		c.buf = append(c.buf, ',')
	}
	c.close(begin, ']')
}

// object writes the object that s has entered. If it is a content part, p is not nil: members that do not count are left
// out, and p receives its type and text.
func (c *canon) object(s *rawjson.Scanner, p *part) {
	c.buf = append(c.buf, '{')
	begin, first := len(c.buf), len(c.members)
	for s.Member() {
		m := member{from: len(c.buf)}
		c.quote(s.Key().Raw)
		m.colon = len(c.buf)
		v := rawjson.Value{Kind: s.Kind()}
		if v.Kind == rawjson.String {
			v = s.Value()
		}
		if p != nil && c.omits(p, string(c.buf[m.from+1:m.colon-1]), v) {
			c.buf = c.buf[:m.from]
			continue
		}
		c.buf = append(c.buf, ':')
		if v.Kind == rawjson.String {
			c.scalar(v)
		} else {
			c.value(s)
		}
		c.buf = append(c.buf, ',')
		m.to = len(c.buf)
		c.members = append(c.members, m)
	}
	if p != nil {
		p.members = len(c.members) - first
	}
	c.sort(begin, c.members[first:])
	c.members = c.members[:first]
	c.close(begin, '}')
}

// omits stores the type or text of a part, and reports whether a member of the part is left out.
func (c *canon) omits(p *part, key string, v rawjson.Value) bool {
	var slot *rawjson.Value
	switch key {
	case "type":
		slot = &p.kind
	case "text":
		slot = &p.text
	}
	if slot != nil {
		if slot.Kind != 0 {
			c.duplicate = key
		}
		*slot = v
	}
	return v.Kind == rawjson.Null || key == "cache_control" || slices.Contains(c.format.Drop, key)
}

// quote writes a string, given its inside.
func (c *canon) quote(inner []byte) {
	c.buf = append(c.buf, '"')
	c.buf = rawjson.AppendCanonical(c.buf, inner)
	c.buf = append(c.buf, '"')
}

// close ends the container whose inside starts at begin. The bracket replaces the last comma.
func (c *canon) close(begin int, bracket byte) {
	if len(c.buf) > begin {
		c.buf = c.buf[:len(c.buf)-1]
	}
	c.buf = append(c.buf, bracket)
}

// sort sorts the members that fill buf from begin to its end.
func (c *canon) sort(begin int, members []member) {
	if slices.IsSortedFunc(members, c.compare) {
		return
	}
	slices.SortFunc(members, c.compare)
	c.swap = c.swap[:0]
	for _, m := range members {
		c.swap = append(c.swap, c.buf[m.from:m.to]...)
	}
	copy(c.buf[begin:], c.swap)
	c.steps += len(c.swap)
}

// compare orders members by key, and those with the same key by position.
func (c *canon) compare(a, b member) int {
	c.steps++
	return cmp.Or(bytes.Compare(c.buf[a.from:a.colon], c.buf[b.from:b.colon]), a.from-b.from)
}
