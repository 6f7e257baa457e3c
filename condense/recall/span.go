package recall

import (
	"strconv"
	"strings"
)

// Span is the events First to Last of a history, or of the one that is Back threads before it.
type Span struct{ First, Last, Back int }

// Name is the id of an event: its position, and for one of an earlier thread which of those it is in.
func Name(position, back int) string {
	if back == 0 {
		return strconv.Itoa(position)
	}
	return strconv.Itoa(position) + "@" + strconv.Itoa(back)
}

// ParseSpan reads an id, or two of them that a range begins and ends with, however models write them. It reports false where there is none.
func ParseSpan(text string) (s Span, ok bool) {
	for rest := text; ; {
		at := strings.IndexAny(rest, "0123456789")
		if at < 0 {
			break
		}
		digits := rest[at:]
		digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789"))]
		n, err := strconv.Atoi(digits)
		switch {
		case err != nil:
			return Span{}, false
		case at > 0 && rest[at-1] == '@':
			s.Back = n
		case s.First == 0:
			s.First = n
		case s.Last == 0:
			s.Last = n
		}
		rest = rest[at+len(digits):]
	}
	s.Last = max(s.First, s.Last)
	return s, s.First > 0
}
