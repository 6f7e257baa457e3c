package split

// End follows a JSON object or array to the bracket that closes it, and checks nothing else.
type End struct {
	Closed bool

	depth    int
	inString bool
	escaped  bool
}

// Write takes the next bytes, and tells how many of them stand before the end.
func (e *End) Write(p []byte) int {
	for i, c := range p {
		if e.Closed {
			return i
		}
		e.next(c)
	}
	return len(p)
}

func (e *End) next(c byte) {
	switch {
	case e.escaped:
		e.escaped = false
	case e.inString:
		e.escaped, e.inString = c == '\\', c != '"'
	case c == '"':
		e.inString = true
	case c == '{' || c == '[':
		e.depth++
	case c == '}' || c == ']':
		e.depth--
		e.Closed = e.depth <= 0
	}
}
