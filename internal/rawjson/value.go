package rawjson

import "fmt"

// Kind is what a value is. The zero Kind is no value at all.
type Kind byte

// The kinds.
const (
	Null   Kind = 'n'
	False  Kind = 'f'
	True   Kind = 't'
	Number Kind = '0'
	String Kind = '"'
	Object Kind = '{'
	Array  Kind = '['
)

// kindOf is the kind of value that c begins, 0 if none begins so.
func kindOf(c byte) Kind {
	switch c {
	case 'n', 'f', 't', '"', '{', '[':
		return Kind(c)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return Number
	}
	return 0
}

// Escapes tells which escapes a string has.
type Escapes uint8

// Plain has none, so that its raw form is its text. Short has only those that are the one usual spelling of their
// character (\" \\ \b \f \n \r \t). Long has others too (\u or \/), so that the same text may be spelt in other ways.
const (
	Plain Escapes = iota
	Short
	Long
)

// Value is a value's text. Raw aliases the scanned text.
type Value struct {
	Raw     []byte
	Kind    Kind
	Escapes Escapes // of a string
}

// Inner is a string without its quotes, still escaped; nil for other values.
func (v Value) Inner() []byte {
	if v.Kind != String || len(v.Raw) < 2 {
		return nil
	}
	return v.Raw[1 : len(v.Raw)-1]
}

// Text is a string decoded; empty for other values. Lone surrogates become U+FFFD.
func (v Value) Text() string {
	if v.Escapes == Plain {
		return string(v.Inner())
	}
	text, _ := AppendUnquote(make([]byte, 0, len(v.Raw)), v.Inner())
	return string(text)
}

// Is reports whether v is a string that holds text.
func (v Value) Is(text string) bool {
	if v.Kind != String {
		return false
	}
	if v.Escapes == Plain {
		return string(v.Inner()) == text
	}
	return len(v.Raw) <= longest*len(text)+2 && v.Text() == text
}

// longest is the length of the longest spelling of one byte: \u0061.
const longest = 6

// Key is a member's name as written, without its quotes. It aliases the scanned text.
type Key struct {
	Raw     []byte
	Escapes Escapes
}

// Name is the key decoded, in buf if it needs one. A key too long for buf is left as written, with its escapes.
func (k Key) Name(buf []byte) []byte {
	if k.Escapes == Plain || len(k.Raw) > cap(buf) {
		return k.Raw
	}
	name, _ := AppendUnquote(buf[:0], k.Raw)
	return name
}

// Code says what is wrong with a text.
type Code string

// The codes.
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
	Offset int // of the byte where it shows
}

func (e *Error) Error() string { return fmt.Sprintf("%s at byte %d", e.Code, e.Offset) }
