// Package rawjson checks JSON text and slices it without decoding it.
//
// A Scanner goes over the text once and accepts exactly the grammar of RFC 8259 with its interoperable choices: UTF-8
// only (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF), no byte order mark, no control character
// in a string, one value and nothing after it, and no more than a given depth of nesting. Two things that the grammar
// allows are allowed here: duplicate names, and \u escapes of lone surrogates. It allocates nothing on valid text.
//
// Members and Elements go over text that a Scanner has passed before, and check nothing again.
package rawjson

// Depths of nesting. DefaultDepth is far above what agents send; MaxDepth bounds the stack that a Scanner uses.
const (
	DefaultDepth = 512
	MaxDepth     = 10000
)

// Scanner reads one text from its beginning to its end, a value at a time:
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
// A value that the caller does not take is checked and skipped. A container that was entered is to be read to its end
// before anything else. The first defect ends all loops and stays: Err tells it.
// A Scanner is used by one goroutine.
type Scanner struct {
	data    []byte
	pos     int
	depth   int // containers that are open
	max     int
	key     Key
	first   bool // a container was just entered
	pending bool // a value stands at pos, not taken yet
	code    Code
	at      int
}

// NewScanner begins a text. At most depth containers may be nested; 0 means DefaultDepth, and more than MaxDepth means
// MaxDepth.
func NewScanner(data []byte, depth int) Scanner {
	s := Scanner{data: data, max: limit(depth), pending: true}
	if len(data) >= 3 && data[0] == 0xEF && data[1] == 0xBB && data[2] == 0xBF {
		s.fail(LeadingMark, 0)
	}
	s.pos = s.space(0)
	return s
}

func limit(depth int) int {
	if depth <= 0 {
		depth = DefaultDepth
	}
	return min(depth, MaxDepth)
}

// Spot is a place between two elements of a text.
type Spot struct {
	Offset int // behind an element of the container that was entered last
	Open   int // containers that are open there
}

// Resume reads on at a spot. What is before it must have been read by another Scanner, of a text that begins with the same
// bytes, with the same depth.
func Resume(data []byte, depth int, at Spot) Scanner {
	return Scanner{data: data, max: limit(depth), pos: at.Offset, depth: at.Open}
}

// Kind is the kind of the value that comes next, 0 if none can.
func (s *Scanner) Kind() Kind {
	if !s.pending || s.code != "" || s.pos >= len(s.data) {
		return 0
	}
	return kindOf(s.data[s.pos])
}

// Object enters the value that comes next if it is an object. Else it is still to be taken.
func (s *Scanner) Object() bool { return s.enter(Object) }

// Array enters the value that comes next if it is an array. Else it is still to be taken.
func (s *Scanner) Array() bool { return s.enter(Array) }

func (s *Scanner) enter(k Kind) bool {
	if s.Kind() != k {
		return false
	}
	if s.depth++; s.depth > s.max {
		s.fail(TooDeep, s.pos)
		return false
	}
	s.pos++
	s.first, s.pending = true, false
	return true
}

// Member goes to the next member of the object that was entered last, and reads its key. At the end of the object it
// leaves it and gives false.
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

// Key is the key that Member read.
func (s *Scanner) Key() Key { return s.key }

// Element goes to the next element of the array that was entered last. At the end of the array it leaves it and gives
// false.
func (s *Scanner) Element() bool {
	if !s.next(']') {
		return false
	}
	s.pending = true
	return true
}

// next goes to where the next element begins, or over the end of the container.
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

// Value takes the value that comes next, whole. It gives the zero Value if there is none or it is not valid.
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

// Offset is where the scanner stands: at a value that is to be taken, else behind what was read last.
func (s *Scanner) Offset() int { return s.pos }

// End checks that nothing but white space follows the value, and tells the first defect of the whole text.
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

// Err is the first defect found, an *Error, or nil.
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

// Valid checks a whole text. The error is an *Error.
func Valid(data []byte, depth int) error {
	s := NewScanner(data, depth)
	return s.End()
}
