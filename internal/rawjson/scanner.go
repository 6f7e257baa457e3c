// Package rawjson validates JSON text and slices it without decoding it.
//
// A Scanner reads the text once and accepts the grammar of RFC 8259 with its interoperable choices: UTF-8 only (RFC 3629:
// no overlong forms, no surrogates, nothing above U+10FFFF), no byte order mark, no control character in a string, a single
// value, and a limited depth of nesting. Like the grammar, it allows duplicate names, and \u escapes of lone surrogates. It
// does not allocate on valid text.
//
// Members and Elements iterate over text that has been validated.
package rawjson

// Limits of nesting. DefaultDepth is far more than agents use. MaxDepth limits the stack that a Scanner needs.
const (
	DefaultDepth = 512
	MaxDepth     = 10000
)

// Scanner reads a text from its beginning to its end, one value at a time:
//
//	s := rawjson.NewScanner(text, 0)
//	if s.Object() {
//		for s.Member() {
//			if string(s.Key().Raw) == "model" {
//				model = s.Value()
//			}
//		}
//	}
//	err := s.End()
//
// A value that the caller does not take is validated and skipped. A container that was entered must be read to its end. The
// first defect ends all loops and is returned by Err. A Scanner is not safe for concurrent use.
type Scanner struct {
	data    []byte
	pos     int
	depth   int // number of open containers
	max     int // limit of depth
	key     Key
	first   bool // a container was just entered
	pending bool // the value at pos was not taken yet
	code    Code // of the first defect
	at      int  // offset of the first defect
}

// NewScanner returns a Scanner for a text with at most depth nested containers. A depth of 0 means DefaultDepth, and one
// above MaxDepth means MaxDepth.
func NewScanner(data []byte, depth int) Scanner {
	s := Scanner{data: data, max: maxDepth(depth), pending: true}
	if len(data) >= 3 && data[0] == 0xEF && data[1] == 0xBB && data[2] == 0xBF {
		s.fail(LeadingMark, 0)
	}
	s.pos = s.space(0)
	return s
}

func maxDepth(depth int) int {
	if depth <= 0 {
		depth = DefaultDepth
	}
	return min(depth, MaxDepth)
}

// Resume returns a Scanner that continues at the end of an element, with the given number of open containers. Another
// Scanner with the same depth must have read a text with the same bytes up to that offset.
func Resume(data []byte, depth, offset, open int) Scanner {
	return Scanner{data: data, max: maxDepth(depth), pos: offset, depth: open}
}

// Kind returns the kind of the next value, judged by its first byte, or 0 if there is none.
func (s *Scanner) Kind() Kind {
	if !s.pending || s.code != "" || s.pos >= len(s.data) {
		return 0
	}
	return kindOf(s.data[s.pos])
}

// Object enters the next value if it is an object. If it returns false, the value can still be taken.
func (s *Scanner) Object() bool { return s.enter(Object) }

// Array enters the next value if it is an array. If it returns false, the value can still be taken.
func (s *Scanner) Array() bool { return s.enter(Array) }

func (s *Scanner) enter(k Kind) bool {
	if s.Kind() != k {
		return false
	}
	s.depth++
	if s.depth > s.max {
		s.fail(TooDeep, s.pos)
		return false
	}
	s.pos++
	s.first, s.pending = true, false
	return true
}

// Member advances to the next member of the object that was entered last, and reads its key. At the end of the object it
// leaves the object and returns false.
func (s *Scanner) Member() bool {
	if !s.next('}') {
		return false
	}
	i, key := s.name(s.pos)
	if i < 0 {
		return false
	}
	s.pos, s.key, s.pending = i, key, true
	return true
}

// Key returns the key that Member read.
func (s *Scanner) Key() Key { return s.key }

// Element advances to the next element of the array that was entered last. At the end of the array it leaves the array and
// returns false.
func (s *Scanner) Element() bool {
	if !s.next(']') {
		return false
	}
	s.pending = true
	return true
}

// next advances to the start of the next element, or behind the end of the container.
func (s *Scanner) next(end byte) bool {
	if s.pending {
		s.Value()
	}
	if s.code != "" {
		return false
	}
	i, more := s.separator(s.pos, end, s.first)
	if i < 0 {
		return false
	}
	s.pos, s.first = i, false
	if !more {
		s.depth--
	}
	return more
}

// Value validates and takes the next value. It returns the zero Value if there is none or it is invalid.
func (s *Scanner) Value() Value {
	if !s.pending || s.code != "" {
		return Value{}
	}
	from := s.pos
	end, escapes := s.skip(from)
	if end < 0 {
		return Value{}
	}
	s.pos, s.pending = end, false
	return Value{Raw: s.data[from:end:end], Kind: kindOf(s.data[from]), Escapes: escapes}
}

// Offset returns the current position: the start of the next value if it was not taken yet, otherwise the end of what was
// read last.
func (s *Scanner) Offset() int { return s.pos }

// End checks that only white space follows, and returns the first defect of the whole text, an *Error, or nil.
func (s *Scanner) End() error {
	if s.pending {
		s.Value()
	}
	if s.code == "" {
		if i := s.space(s.pos); i < len(s.data) {
			s.fail(Trailing, i)
		}
	}
	return s.Err()
}

// Err returns the first defect found so far, an *Error, or nil.
func (s *Scanner) Err() error {
	if s.code == "" {
		return nil
	}
	return &Error{Code: s.code, Offset: s.at}
}

func (s *Scanner) fail(code Code, at int) int {
	if s.code == "" {
		s.code, s.at = code, at
	}
	return -1
}

// Valid returns the first defect of a text, an *Error, or nil.
func Valid(data []byte, depth int) error {
	s := NewScanner(data, depth)
	return s.End()
}
