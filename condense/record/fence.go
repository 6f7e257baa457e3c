package record

import (
	"strings"
	"unicode"
)

// Names that begin a tag which text of others must not contain. A prefix of a tag's name is enough.
var (
	ownTags  = []string{"dewpoint"}
	roleTags = []string{"dewpoint", "system", "developer", "user", "human", "assistant", "tool", "function", "instruction",
		"im_start", "im_end", "start_of_turn", "end_of_turn", "sys>", "inst"}
	roleLines = []string{"system:", "developer:", "user:", "human:", "assistant:", "tool:"}
)

// Defuse makes text unable to open or close a tag of ours, or a special token of a chat template, so that it can be quoted in a prompt.
func Defuse(text string) string { return defuse(text, ownTags) }

// defuse makes text unable to open or close a tag whose name begins with one of names, or a special token of a chat
// template (<|...|>): the angle brackets become single angle quotes. Letters and brackets that look like these count too. Other text stays as it is, control characters and
// invalid UTF-8 left out. Defusing twice is the same as once.
func defuse(text string, names []string) string {
	text = Printable(text)
	var b strings.Builder
	b.Grow(len(text))
	for {
		n := strings.IndexFunc(text, func(r rune) bool { return r == '|' || reads(r) == '<' })
		if n < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:n])
		text = text[n:]
		switch {
		case text[0] != '|':
			run := tagRun(text)
			opening := text[:run]
			if text = text[run:]; tagAhead(text, names) {
				opening = strings.Map(quoted, opening)
			}
			b.WriteString(opening)
		case strings.HasPrefix(text, "|>"):
			b.WriteString("|›")
			text = text[2:]
		default:
			b.WriteByte('|')
			text = text[1:]
		}
	}
}

// tagRun is the length of what may stand between an angle bracket and a tag's name. Runs are taken whole, so that a
// long one costs no more than its length.
func tagRun(text string) int {
	n := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune("</!?", reads(r)) && !unicode.IsSpace(r) })
	if n < 0 {
		return len(text)
	}
	return n
}

// quoted makes an angle bracket, or what reads as one, a single angle quote.
func quoted(r rune) rune {
	if reads(r) == '<' {
		return '‹'
	}
	return r
}

func tagAhead(text string, names []string) bool {
	if strings.HasPrefix(text, "|") {
		return true
	}
	for _, name := range names {
		if readsAs(text, name) {
			return true
		}
	}
	return false
}

// Printable leaves out what is neither printable nor a line feed or tab.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= ' ' && r < 0x7f || r == '\n' || r == '\t' || r == '\u200d':
			return r
		case r == '\r' || unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Cf, r):
			return -1
		case r == '\u2028' || r == '\u2029':
			return '\n'
		}
		return r
	}, text)
}

// inert makes text that stands in a summary harmless: besides tags, lines that look like the turn of a speaker become
// list items.
func inert(text string) string {
	lines := strings.Split(defuse(text, roleTags), "\n")
	for i, line := range lines {
		start := strings.TrimLeft(line, " \t")
		for _, role := range roleLines {
			if readsAs(start, role) {
				lines[i] = "- " + start
			}
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
