package tidy

import (
	"strings"
	"unicode/utf8"
)

// printed is a text as a terminal shows it: without colours, and with what was overwritten in a line gone.
func printed(text string) string {
	if !strings.ContainsAny(text, "\x1b\r\b") {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimRight(line, "\r\n")
		b.WriteString(shown(body) + line[len(body):])
	}
	return b.String()
}

// shown is what is left of a line in the end. One with codes that do more than colour and erase stays as it is.
func shown(line string) string {
	if !strings.ContainsAny(line, "\x1b\r\b") {
		return line
	}
	var cells []string // of one line of a terminal
	column, back := 0, false
	for i := 0; i < len(line); {
		size := 1
		switch line[i] {
		case '\x1b':
			code := understood(line[i:])
			switch size = len(code); code {
			case "":
				return line
			case "\x1b[2K": // erases the line
				cells, column = cells[:0], 0
			case "\x1b[K", "\x1b[0K": // or the rest of it
				cells = cells[:min(column, len(cells))]
			}
		case '\r':
			column, back = 0, true
		case '\b':
			column, back = max(column-1, 0), true
		default:
			_, size = utf8.DecodeRuneInString(line[i:])
			if column == len(cells) {
				cells = append(cells, "")
			}
			cells[column] = line[i : i+size]
			column++
		}
		i += size
	}
	if back && strings.Contains(line, "\t") { // tabs are as wide as their column makes them
		return line
	}
	return strings.Join(cells, "")
}

// understood is the code that a text begins with, if it is one of a character set, a window's title, colours, modes, or erasing in a line;
// else empty. Results may be full of codes, and are read for each request: a regular expression takes many times as long.
func understood(text string) string {
	if len(text) < 3 {
		return ""
	}
	switch rest := text[2:]; text[1] {
	case '(', ')':
		if rest[0] < utf8.RuneSelf {
			return text[:3]
		}
	case ']':
		end := strings.IndexAny(rest, "\a\x1b")
		switch titles := strings.Contains("012", rest[:1]) && strings.HasPrefix(rest[1:], ";"); {
		case !titles || end < 0:
		case rest[end] == '\a':
			return text[:end+3]
		case strings.HasPrefix(rest[end+1:], "\\"):
			return text[:end+4]
		}
	case '[':
		end := strings.IndexFunc(rest, func(r rune) bool { return r < ' ' || r > '?' })
		if end >= 0 && (strings.IndexByte("mhl", rest[end]) >= 0 || rest[end] == 'K' && (end == 0 || rest[:end] == "0" || rest[:end] == "2")) {
			return text[:end+3]
		}
	}
	return ""
}
