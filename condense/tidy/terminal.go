package tidy

import (
	"strings"
	"unicode/utf8"
)

// renderTerminal returns text as a terminal would show it: without colours, and with overwritten parts of a line gone.
func renderTerminal(text string) string {
	if !strings.ContainsAny(text, "\x1b\r\b") {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimRight(line, "\r\n")
		b.WriteString(renderLine(body) + line[len(body):])
	}
	return b.String()
}

// renderLine applies the control characters of a line. A line with other escape sequences is returned unchanged.
func renderLine(line string) string {
	if !strings.ContainsAny(line, "\x1b\r\b") {
		return line
	}
	var cells []string // one per column
	column := 0
	movedBack := false
	for i := 0; i < len(line); {
		size := 1
		switch line[i] {
		case '\x1b':
			sequence := escapeSequence(line[i:])
			size = len(sequence)
			switch sequence {
			case "":
				return line
			case "\x1b[2K": // erase the line
				cells, column = cells[:0], 0
			case "\x1b[K", "\x1b[0K": // erase from the cursor to the end of the line
				cells = cells[:min(column, len(cells))]
			}
		case '\r':
			column, movedBack = 0, true
		case '\b':
			column, movedBack = max(column-1, 0), true
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
	if movedBack && strings.Contains(line, "\t") { // the width of a tab depends on its column
		return line
	}
	return strings.Join(cells, "")
}

// escapeSequence returns the escape sequence that text begins with, if it selects a character set, sets a window's title, a
// colour or a mode, or erases within the line. Otherwise it returns "". It is written by hand because results may be full of
// sequences and are read for each request: a regular expression takes many times as long.
func escapeSequence(text string) string {
	if len(text) < 3 {
		return ""
	}
	rest := text[2:]
	switch text[1] {
	case '(', ')':
		if rest[0] < utf8.RuneSelf {
			return text[:3]
		}
	case ']':
		setsTitle := strings.Contains("012", rest[:1]) && strings.HasPrefix(rest[1:], ";")
		end := strings.IndexAny(rest, "\a\x1b")
		switch {
		case !setsTitle || end < 0:
		case rest[end] == '\a':
			return text[:end+3]
		case strings.HasPrefix(rest[end+1:], "\\"):
			return text[:end+4]
		}
	case '[':
		end := strings.IndexFunc(rest, func(r rune) bool { return r < ' ' || r > '?' })
		if end < 0 {
			return ""
		}
		parameters, final := rest[:end], rest[end]
		erases := final == 'K' && (parameters == "" || parameters == "0" || parameters == "2")
		if erases || strings.IndexByte("mhl", final) >= 0 {
			return text[:end+3]
		}
	}
	return ""
}
