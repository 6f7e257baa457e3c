package split

import (
	"bytes"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// canonDepth bounds the nesting of what is brought into canonical form: sorting moves the members of each level, so the
// work is at most this many times the size.
const canonDepth = 64

// maxParts is how many parts of a content are brought into canonical form.
const maxParts = 16 << 10

// canon writes JSON in one spelling: members sorted by key, no white space, strings as rawjson.AppendCanonical spells
// them, numbers as they came. Members of one name keep their order, since the last of them counts for most readers.
type canon struct {
	buf     []byte // the result
	swap    []byte // members being sorted
	plain   []byte // arguments decoded, or a string spelt canonically
	members []member
	parts   []part
	format  *Format
	twice   string // a key that a part had twice, of those that say what it is
	steps   int    // comparisons, and bytes moved, while sorting: what is more than linear
}

// member is a member in buf: from its key's quote to colon, and to the end of the comma after its value.
type member struct{ from, colon, to int }

// part is a part of a message's content.
type part struct {
	from, to   int // in buf
	members    int
	kind, text rawjson.Value
}

// slot is the place of what says what the part is, nil for other keys.
func (p *part) slot(key string) *rawjson.Value {
	switch key {
	case "type":
		return &p.kind
	case "text":
		return &p.text
	}
	return nil
}

// text spells a string; the result is good until the next use of c.
func (c *canon) text(v rawjson.Value) []byte {
	if v.Escapes != rawjson.Long {
		return v.Inner()
	}
	c.plain = rawjson.AppendCanonical(c.plain[:0], v.Inner())
	return c.plain
}

// json brings a whole text into buf, if it is valid and not too deep.
func (c *canon) json(text []byte) bool {
	c.buf, c.members = c.buf[:0], c.members[:0]
	s := rawjson.NewScanner(text, canonDepth)
	c.value(&s)
	return s.End() == nil
}

// arguments brings the JSON that a string holds into buf.
func (c *canon) arguments(inner []byte) bool {
	var exact bool
	c.plain, exact = rawjson.AppendUnquote(c.plain[:0], inner)
	return exact && c.json(c.plain)
}

// list brings an array of content parts into buf and parts, if it is not too deep nor too long.
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
		if p.to = len(c.buf); !c.format.Skip(p.kind) {
			c.parts = append(c.parts, p)
		}
	}
	return s.End() == nil
}

// lone is the text of the only part, if that is a text part with nothing else.
func (c *canon) lone() (rawjson.Value, bool) {
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

// object writes the object that s has entered. Of a part it leaves out what does not count, and notes what it is.
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
		if p != nil && c.leavesOut(p, string(c.buf[m.from+1:m.colon-1]), v) {
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

// leavesOut reports whether a member of a part does not count, and notes what it says of the part.
func (c *canon) leavesOut(p *part, key string, v rawjson.Value) bool {
	if slot := p.slot(key); slot != nil {
		if slot.Kind != 0 {
			c.twice = key
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

// close ends a container whose inside begins at begin: the last comma becomes its bracket.
func (c *canon) close(begin int, bracket byte) {
	if len(c.buf) > begin {
		c.buf = c.buf[:len(c.buf)-1]
	}
	c.buf = append(c.buf, bracket)
}

// sort orders the members that stand in buf from begin to its end.
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

// compare orders members by key, and those of one key by their place.
func (c *canon) compare(a, b member) int {
	c.steps++
	if n := bytes.Compare(c.buf[a.from:a.colon], c.buf[b.from:b.colon]); n != 0 {
		return n
	}
	return a.from - b.from
}
