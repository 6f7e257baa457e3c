package tidy

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Codes that a terminal obeys and that are understood: character sets, a window's title, colours, modes, and erasing in a line.
var codes = regexp.MustCompile(`^\x1b(?:[()][[:ascii:]]|\][0-2];[^\a\x1b]*(?:\a|\x1b\\)|\[(?:[ -?]*[mhl]|([02]?)K))`)

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
			code := codes.FindStringSubmatchIndex(line[i:])
			if code == nil {
				return line
			}
			size = code[1]
			switch erases := code[2] >= 0; {
			case erases && line[i+code[2]:i+code[3]] == "2": // all of the line
				cells, column = cells[:0], 0
			case erases:
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
