package tidy

import (
	"strings"
	"unicode/utf8"
)

// Control characters that a terminal obeys.
const (
	escape    = '\x1b'
	bell      = '\a'
	backspace = '\b'
)

// printed is a text as a terminal shows it: without colours, and with what was overwritten in a line gone.
func printed(text string) string {
	if !strings.ContainsAny(text, "\x1b\r\b") {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimRight(line, "\r\n")
		if plain, ok := shown(body); ok {
			b.WriteString(plain)
			b.WriteString(line[len(body):])
			continue
		}
		b.WriteString(line)
	}
	return b.String()
}

// shown is what is left of a line in the end. It reports false for one with codes that do more than colour and erase: it stays.
func shown(line string) (string, bool) {
	if !strings.ContainsAny(line, "\x1b\r\b") {
		return line, true
	}
	var s screen
	for i := 0; i < len(line); {
		switch line[i] {
		case escape:
			n, ok := s.obey(line[i:])
			if !ok {
				return "", false
			}
			i += n
			continue
		case '\r':
			s.column, s.moved = 0, true
		case backspace:
			s.column, s.moved = max(s.column-1, 0), true
		default:
			_, size := utf8.DecodeRuneInString(line[i:])
			s.put(line[i : i+size])
			i += size
			continue
		}
		i++
	}
	return strings.Join(s.cells, ""), !s.moved || !strings.Contains(line, "\t") // tabs are as wide as their column makes them
}

// screen is one line of a terminal.
type screen struct {
	cells  []string
	column int
	moved  bool // the cursor went back
}

func (s *screen) put(char string) {
	if s.column < len(s.cells) {
		s.cells[s.column] = char
	} else {
		s.cells = append(s.cells, char)
	}
	s.column++
}

// obey does what a code says. It gives the code's length, and false if it is not one of those that are understood: colours, modes,
// character sets, erasing, and a window's title.
func (s *screen) obey(code string) (length int, understood bool) {
	if len(code) < 2 {
		return 0, false
	}
	switch code[1] {
	case '(', ')':
		return 3, len(code) > 2
	case ']':
		return title(code)
	case '[':
	default:
		return 0, false
	}
	end := 2
	for end < len(code) && code[end] >= ' ' && code[end] < '@' {
		end++
	}
	if end == len(code) {
		return 0, false
	}
	switch kind, parameters := code[end], code[2:end]; {
	case kind == 'm' || kind == 'h' || kind == 'l':
	case kind == 'K' && (parameters == "" || parameters == "0"):
		s.cells = s.cells[:min(s.column, len(s.cells))]
	case kind == 'K' && parameters == "2":
		s.cells, s.column = s.cells[:0], 0
	default:
		return 0, false
	}
	return end + 1, true
}

// title is the length of a code that sets a window's title.
func title(code string) (length int, ok bool) {
	if len(code) < 4 || code[2] < '0' || code[2] > '2' || code[3] != ';' {
		return 0, false
	}
	for i := 4; i < len(code); i++ {
		switch code[i] {
		case bell:
			return i + 1, true
		case escape:
			return i + 2, i+1 < len(code) && code[i+1] == '\\'
		}
	}
	return 0, false
}
