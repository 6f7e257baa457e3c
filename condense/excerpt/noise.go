package excerpt

import "strings"

// isNoise reports whether a line says too little to be quoted, whatever it names: a number, a closing tag or a heading alone, or the placeholder of
// something that is no text. A line number that a tool wrote in front of the line is ignored.
func isNoise(line string) bool {
	line = strings.TrimSpace(withoutNumber(line))
	switch {
	case !strings.ContainsFunc(line, isLetter):
		return len(strings.Trim(line, marks)) <= maxNumber && strings.Trim(line, marks+digits) == ""
	case strings.HasPrefix(line, "</"):
		return isTag(line)
	case line[0] == '#':
		return isHeading(line)
	case line[0] == '[':
		return line[len(line)-1] == ']' && strings.Trim(line[1:len(line)-1], " _-"+letters) == ""
	}
	return false
}

// maxNumber is the length in digits of a number that is no id.
const maxNumber = 3

const digits, marks = "0123456789", ",;:()[]{}| \t"

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func isLetter(r rune) bool { return r >= 0x80 || strings.ContainsRune(letters, r) }

// withoutNumber returns a line without the number that a tool wrote in front of it.
func withoutNumber(line string) string {
	line = strings.TrimLeft(line, " \t")
	rest := strings.TrimLeft(line, digits)
	if len(rest) == len(line) {
		return line
	}
	for _, separator := range [...]string{"\t", ":", "|", "→", " "} {
		if text, ok := strings.CutPrefix(rest, separator); ok {
			return text
		}
	}
	return line
}

// isTag reports whether a line that begins with "</" has nothing but the tag that it closes.
func isTag(line string) bool {
	name := strings.TrimRight(strings.Trim(line, "</"), ">;,)}/ ")
	return strings.Contains(line, ">") && strings.Trim(name, "-_.:"+digits+letters) == ""
}

// maxHeading is the number of words of a bare heading. What is longer says something, or is a comment in a program.
const maxHeading = 3

// isHeading reports whether a line is a short heading in Markdown.
func isHeading(line string) bool {
	text := strings.TrimLeft(line, "#")
	return strings.HasPrefix(text, " ") && len(strings.Fields(text)) <= maxHeading
}
