package rawjson

// skip checks the value at i, and gives the index after it. A container is gone through without making a Value of anything
// in it: a request has thousands of small ones.
func (s *Scanner) skip(i int) (end int, e Escapes) {
	if i >= len(s.data) || s.data[i] != byte(Object) && s.data[i] != byte(Array) {
		return s.scalar(i)
	}
	kind := Kind(s.data[i])
	if s.depth++; s.depth > s.max {
		return s.fail(TooDeep, i), Plain
	}
	closing := byte(kind) + 2 // of [ and { alike
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

// scalar checks the string, number or literal at i, and gives the index after it.
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

// text checks the string at i.
func (s *Scanner) text(i int) (end int, e Escapes) {
	end, e, code := scanString(s.data, i+1)
	if code != "" {
		return s.fail(code, end), Plain
	}
	return end, e
}

// separator goes from i to the next element, or over the end of the container (more is false), or gives -1.
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

// name reads the key at i and its colon, and gives the index of the value.
func (s *Scanner) name(i int) (int, Key) {
	if i >= len(s.data) {
		return s.fail(Truncated, i), Key{}
	}
	if s.data[i] != '"' {
		return s.fail(Syntax, i), Key{}
	}
	end, escapes := s.text(i)
	if end < 0 {
		return -1, Key{}
	}
	key := Key{Raw: s.data[i+1 : end-1 : end-1], Escapes: escapes}
	if i = s.space(end); i >= len(s.data) {
		return s.fail(Truncated, i), Key{}
	}
	if s.data[i] != ':' {
		return s.fail(Syntax, i), Key{}
	}
	return s.space(i + 1), key
}

func (s *Scanner) literal(i int, want string) int {
	rest := s.data[i:]
	if len(rest) < len(want) || string(rest[:len(want)]) != want {
		return s.fail(BadLiteral, i)
	}
	return i + len(want)
}

// number gives the index after the number at i.
func (s *Scanner) number(i int) int {
	at := i
	if s.data[at] == '-' {
		at++
	}
	if at < len(s.data) && s.data[at] == '0' {
		at++ // and no other digit
	} else {
		at = digits(s.data, at)
	}
	if at > 0 && at < len(s.data) && s.data[at] == '.' {
		at = digits(s.data, at+1)
	}
	if at > 0 && at < len(s.data) && s.data[at]|0x20 == 'e' {
		if at++; at < len(s.data) && (s.data[at] == '+' || s.data[at] == '-') {
			at++
		}
		at = digits(s.data, at)
	}
	if at < 0 {
		return s.fail(BadNumber, i)
	}
	return at
}

// digits gives the index after the run of at least one digit at i, or -1.
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

// space is the index of the first byte from i on that is no white space.
func (s *Scanner) space(i int) int {
	for i < len(s.data) && s.data[i] <= ' ' {
		if c := s.data[i]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			break
		}
		i++
	}
	return i
}
