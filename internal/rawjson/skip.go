package rawjson

// skip checks the value at i, inside depth containers, and gives the index after it, or -1.
func (s *Scanner) skip(i, depth int) (int, Escapes) {
	if i >= len(s.data) {
		return s.fail(Truncated, i), 0
	}
	switch c := s.data[i]; c {
	case '"':
		end, escapes, code := scanString(s.data, i+1)
		if code != "" {
			return s.fail(code, end), 0
		}
		return end, escapes
	case '{', '[':
		if depth >= s.max {
			return s.fail(TooDeep, i), 0
		}
		if c == '{' {
			return s.members(i+1, depth+1), 0
		}
		return s.elements(i+1, depth+1), 0
	case 't':
		return s.literal(i, "true"), 0
	case 'f':
		return s.literal(i, "false"), 0
	case 'n':
		return s.literal(i, "null"), 0
	default:
		return s.number(i), 0
	}
}

func (s *Scanner) members(i, depth int) int {
	i, more := s.separator(i, '}', true)
	for more {
		if i, _ = s.name(i); i < 0 {
			return -1
		}
		if i, _ = s.skip(i, depth); i < 0 {
			return -1
		}
		i, more = s.separator(i, '}', false)
	}
	return i
}

func (s *Scanner) elements(i, depth int) int {
	i, more := s.separator(i, ']', true)
	for more {
		if i, _ = s.skip(i, depth); i < 0 {
			return -1
		}
		i, more = s.separator(i, ']', false)
	}
	return i
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
	end, escapes, code := scanString(s.data, i+1)
	if code != "" {
		return s.fail(code, end), Key{}
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

func (s *Scanner) number(i int) int {
	if kindOf(s.data[i]) != Number {
		return s.fail(Syntax, i)
	}
	end := scanNumber(s.data, i)
	if end < 0 {
		return s.fail(BadNumber, i)
	}
	return end
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
