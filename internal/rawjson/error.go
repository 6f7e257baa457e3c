package rawjson

import "fmt"

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
