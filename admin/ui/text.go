package ui

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible returns a text whose invisible characters can be seen: control characters, which could act on a terminal that it is copied to, marks
// that turn the direction of text, and characters without width. html/template escapes the rest.
func visible(text string) string {
	if !strings.ContainsFunc(text, acts) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, c := range strings.ReplaceAll(text, "\r\n", "\n") {
		switch {
		case !acts(c):
			b.WriteRune(c)
		case c < ' ':
			b.WriteRune('\u2400' + c) // the picture of the character
		case c == '\u007f':
			b.WriteRune('\u2421')
		default:
			fmt.Fprintf(&b, "[U+%04X]", c)
		}
	}
	return b.String()
}

// acts reports whether a character does something else than to be read. A joiner of emoji and scripts (U+200D, U+200C) stays as it is.
func acts(c rune) bool {
	switch c {
	case '\n', '\t', '\u200c', '\u200d':
		return false
	case '\u2028', '\u2029', '\u3164', '\uffa0', '\u115f', '\u1160':
		return true
	}
	return unicode.IsControl(c) || unicode.Is(unicode.Cf, c)
}

// written returns a message's content as one text.
func written(content Content) string {
	c := content()
	var parts []string
	add := func(text string) {
		if text != "" {
			parts = append(parts, text)
		}
	}
	if c.Reasoning != "" {
		add("[reasoning] " + c.Reasoning)
	}
	add(c.Text)
	for _, call := range c.Calls {
		add("→ " + call.Name + arguments(call.Arguments))
	}
	for _, i := range c.Images {
		mark := "[image"
		if i.Width > 0 {
			mark += fmt.Sprintf(" %d × %d", i.Width, i.Height)
		}
		if i.Bytes > 0 {
			mark += ", " + size(i.Bytes)
		}
		add(mark + "]")
	}
	for _, f := range c.Files {
		add("[" + strings.TrimSpace(f.Kind+" "+f.Name) + "]")
	}
	return strings.Join(parts, "\n")
}

// arguments writes the arguments of a call as a person reads them: a line for each, strings without their escapes. What is not a JSON object stays
// as it is.
func arguments(text string) string {
	d := json.NewDecoder(strings.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return " " + text
	}
	var lines []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return " " + text
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return " " + text
		}
		var words string
		if json.Unmarshal(value, &words) != nil {
			words = string(value)
		}
		lines = append(lines, fmt.Sprint("  ", name, ": ", words))
	}
	if len(lines) == 1 && !strings.Contains(lines[0], "\n") {
		return lines[0]
	}
	return "\n" + strings.Join(lines, "\n")
}

// cut returns the beginning of a text of at most n bytes, ending with a whole character.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// firstLine returns the beginning of a text as one line.
func firstLine(text string, n int) string {
	line := strings.Join(strings.Fields(cut(text, 8*n)), " ")
	if len(line) <= n {
		return line
	}
	return strings.TrimSpace(cut(line, n)) + " …"
}

// escaped returns the length of a text as HTML has it.
func escaped(text string) int {
	n := len(text)
	for i := range len(text) {
		switch text[i] {
		case '<', '>', '&', '"', '\'', '+':
			n += 4
		}
	}
	return n
}
