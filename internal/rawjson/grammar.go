package rawjson

// The methods in this file return the index after what they validated, or a negative one after a defect.

// skip validates the value at i. It makes no Value of anything inside a container, since a request has thousands of them.
func (s *Scanner) skip(i int) (end int, e Escapes) {
	if i >= len(s.data) || s.data[i] != byte(Object) && s.data[i] != byte(Array) {
		return s.scalar(i)
	}
	kind := Kind(s.data[i])
	s.depth++
	if s.depth > s.max {
		return s.fail(TooDeep, i), Plain
	}
	closing := byte(kind) + 2 // ] follows [ in ASCII at that distance, as } does {
	i, more := s.separator(i+1, closing, true)
	for more {
		if kind == Object {
			i, _ = s.name(i)
		}
		if i >= 0 {
			i, _ = s.skip(i)
		}
		if i < 0 {
			return -1, Plain
		}
		i, more = s.separator(i, closing, false)
	}
	s.depth--
	return i, Plain
}

// scalar validates the string, number or literal at i.
func (s *Scanner) scalar(i int) (end int, e Escapes) {
	if i >= len(s.data) {
		return s.fail(Truncated, i), Plain
	}
	switch kindOf(s.data[i]) {
	case String:
		return s.text(i)
	case Number:
		return s.number(i), Plain
	case True:
		return s.literal(i, "true"), Plain
	case False:
		return s.literal(i, "false"), Plain
	case Null:
		return s.literal(i, "null"), Plain
	}
	return s.fail(Syntax, i), Plain
}

// separator advances from i to the next element, or behind the end of the container; then more is false.
func (s *Scanner) separator(i int, end byte, first bool) (next int, more bool) {
	i = s.space(i)
	switch {
	case i >= len(s.data):
		return s.fail(Truncated, i), false
	case s.data[i] == end:
		return i + 1, false
	case first:
		return i, true
	case s.data[i] != ',':
		return s.fail(Syntax, i), false
	}
	return s.space(i + 1), true
}

// name reads the key at i and its colon, and returns the index of the value.
func (s *Scanner) name(i int) (value int, key Key) {
	if !s.expect(i, '"') {
		return -1, key
	}
	end, escapes := s.text(i)
	if end < 0 {
		return -1, key
	}
	key = Key{Raw: s.data[i+1 : end-1 : end-1], Escapes: escapes}
	i = s.space(end)
	if !s.expect(i, ':') {
		return -1, key
	}
	return s.space(i + 1), key
}

// expect checks that the byte at i is c.
func (s *Scanner) expect(i int, c byte) bool {
	if i >= len(s.data) {
		s.fail(Truncated, i)
	} else if s.data[i] != c {
		s.fail(Syntax, i)
	}
	return s.code == ""
}

func (s *Scanner) literal(i int, want string) int {
	rest := s.data[i:]
	if len(rest) < len(want) || string(rest[:len(want)]) != want {
		return s.fail(BadLiteral, i)
	}
	return i + len(want)
}

// number validates the number at i.
func (s *Scanner) number(i int) int {
	at := i
	if s.data[at] == '-' {
		at++
	}
	if at < len(s.data) && s.data[at] == '0' {
		at++ // no more digits may follow
	} else {
		at = digits(s.data, at)
	}
	if at > 0 && at < len(s.data) && s.data[at] == '.' {
		at = digits(s.data, at+1)
	}
	if at > 0 && at < len(s.data) && s.data[at]|0x20 == 'e' {
		at++
		if at < len(s.data) && (s.data[at] == '+' || s.data[at] == '-') {
			at++
		}
		at = digits(s.data, at)
	}
	if at < 0 {
		return s.fail(BadNumber, i)
	}
	return at
}

// digits returns the index after the digits at i, or -1 if there are none.
func digits(data []byte, i int) int {
	from := i
	for i < len(data) && '0' <= data[i] && data[i] <= '9' {
		i++
	}
	if i == from {
		return -1
	}
	return i
}

// space returns the index of the first byte from i on that is not white space.
func (s *Scanner) space(i int) int {
	for i < len(s.data) && s.data[i] <= ' ' {
		if c := s.data[i]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			break
		}
		i++
	}
	return i
}
