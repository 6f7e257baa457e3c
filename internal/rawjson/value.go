package rawjson

import (
	"fmt"
	"iter"
)

// Kind is the kind of a JSON value. The zero Kind means that there is no value.
type Kind byte

// Kinds of values, each named by the first byte of such a value.
const (
	Null   Kind = 'n'
	False  Kind = 'f'
	True   Kind = 't'
	Number Kind = '0'
	String Kind = '"'
	Object Kind = '{'
	Array  Kind = '['
)

// kindOf returns the kind of a value that starts with c, or 0 if no value does.
func kindOf(c byte) Kind {
	switch c {
	case 'n', 'f', 't', '"', '{', '[':
		return Kind(c)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return Number
	}
	return 0
}

// Escapes classifies the escape sequences in a string.
type Escapes uint8

const (
	Plain Escapes = iota // none: the raw form is the text
	Short                // only \" \\ \b \f \n \r \t, which are the canonical escapes of their characters
	Long                 // also \u or \/, so that the same text has other encodings
)

// Value is a JSON value. Raw aliases the scanned text.
type Value struct {
	Raw     []byte
	Kind    Kind
	Escapes Escapes // of a string
}

// Inner returns a string without its quotes, still escaped. It returns nil for other values.
func (v Value) Inner() []byte {
	if v.Kind != String || len(v.Raw) < 2 {
		return nil
	}
	return v.Raw[1 : len(v.Raw)-1]
}

// Text returns a decoded string, in which lone surrogates become U+FFFD. It returns "" for other values.
func (v Value) Text() string {
	if v.Escapes == Plain {
		return string(v.Inner())
	}
	text, _ := AppendUnquote(make([]byte, 0, len(v.Raw)), v.Inner())
	return string(text)
}

// Is reports whether v is a string that decodes to text.
func (v Value) Is(text string) bool {
	if v.Kind != String {
		return false
	}
	if v.Escapes == Plain {
		return string(v.Inner()) == text
	}
	return len(v.Raw) <= maxEscape*len(text)+2 && v.Text() == text
}

// maxEscape is the length of the longest encoding of one byte, such as \u0061.
const maxEscape = 6

// Key is the key of a member as written, without its quotes. Raw aliases the scanned text.
type Key struct {
	Raw     []byte
	Escapes Escapes
}

// Name returns the decoded key. It uses buf if the key has escapes. A key that is too long for buf is returned as written.
func (k Key) Name(buf []byte) []byte {
	if k.Escapes == Plain || len(k.Raw) > cap(buf) {
		return k.Raw
	}
	name, _ := AppendUnquote(buf[:0], k.Raw)
	return name
}

// Members iterates over the members of an object that has been validated. Any other value has no members. On invalid text
// it stops at the first defect.
func Members(object []byte) iter.Seq2[Key, Value] {
	return func(yield func(Key, Value) bool) {
		s := NewScanner(object, MaxDepth)
		for entered := s.Object(); entered && s.Member(); {
			if v := s.Value(); v.Kind == 0 || !yield(s.key, v) {
				return
			}
		}
	}
}

// Elements iterates over the elements of an array, as Members does over the members of an object.
func Elements(array []byte) iter.Seq[Value] {
	return func(yield func(Value) bool) {
		s := NewScanner(array, MaxDepth)
		for entered := s.Array(); entered && s.Element(); {
			if v := s.Value(); v.Kind == 0 || !yield(v) {
				return
			}
		}
	}
}

// ValueOf returns text that has been validated as a Value.
func ValueOf(text []byte) Value {
	s := NewScanner(text, MaxDepth)
	return s.Value()
}

// Code says what is wrong with a text.
type Code string

// Codes of an Error.
const (
	Syntax      Code = "unexpected character"
	Truncated   Code = "unexpected end"
	BadLiteral  Code = "invalid literal"
	BadNumber   Code = "invalid number"
	BadEscape   Code = "invalid escape in a string"
	BadUTF8     Code = "invalid UTF-8"
	Control     Code = "control character in a string"
	TooDeep     Code = "nested too deeply"
	Trailing    Code = "more text after the value"
	LeadingMark Code = "byte order mark"
)

// Error is the first defect of a text.
type Error struct {
	Code   Code
	Offset int // of the byte at which it was found
}

func (e *Error) Error() string { return fmt.Sprintf("%s at byte %d", e.Code, e.Offset) }
