package record

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sizes of passages: the maximum, in bytes, and that of a remark which stays with the sentence before it, in characters.
const (
	passageBytes = 400
	remark       = 16
)

// Passages divides what a person typed into parts that mean the same alone, verbatim but for the space around lines. A part is a paragraph, with
// the list that it introduces. Of a longer paragraph the parts are its sentences and list items, unless it quotes. What is only quoted is no part.
func Passages(typed string) (passages []string) {
	for _, p := range paragraphs(typed) {
		parts := []string{p.text()}
		if len(parts[0]) > passageBytes {
			parts = nil
			if !p.quotes {
				parts = sentences(p.lines)
			}
		}
		for _, part := range parts {
			if len(part) <= passageBytes && p.own {
				passages = append(passages, part)
			}
		}
	}
	return passages
}

// paragraph is what stands between empty lines.
type paragraph struct {
	lines  []string
	own    bool // a line of it is not quoted
	quotes bool // a line of it is
}

func (p *paragraph) text() string { return strings.Join(p.lines, "\n") }

// paragraphs divides a text. A paragraph that ends with a colon goes on with the next, and a fenced block is never divided.
func paragraphs(text string) (all []paragraph) {
	var p paragraph
	fence := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		mark := line[:min(len(line), 3)]
		isFence := mark == "```" || mark == "~~~"
		quoted := fence != "" || isFence || strings.HasPrefix(line, ">")
		switch {
		case isFence && fence == "":
			fence = mark
		case mark == fence:
			fence = ""
		}
		if line == "" && fence == "" {
			if n := len(p.lines); n > 0 && !introduces(p.lines[n-1]) {
				all, p = append(all, p), paragraph{}
			}
			continue
		}
		p.lines = append(p.lines, line)
		p.own, p.quotes = p.own || !quoted, p.quotes || quoted
	}
	return append(all, p)
}

func introduces(line string) bool {
	return strings.HasSuffix(line, ":") || strings.HasSuffix(line, "：")
}

// sentences returns the sentences and the list items of a paragraph. An item follows the sentence that introduces its list.
func sentences(lines []string) (all []string) {
	intro := ""
	for _, block := range blocks(lines) {
		if isItem(block) {
			all = append(all, strings.TrimPrefix(intro+"\n"+block, "\n"))
			continue
		}
		intro = ""
		prose := split(block)
		if last := len(prose) - 1; last >= 0 && introduces(prose[last]) {
			intro, prose = prose[last], prose[:last]
		}
		all = append(all, prose...)
	}
	return all
}

// blocks divides lines into list items, with the lines that continue them, and what stands before them.
func blocks(lines []string) (all []string) {
	from := 0
	for i := range lines {
		if i > from && isItem(lines[i]) {
			all = append(all, strings.Join(lines[from:i], "\n"))
			from = i
		}
	}
	return append(all, strings.Join(lines[from:], "\n"))
}

// isItem reports whether a line begins with the mark of a list.
func isItem(line string) bool {
	mark, _, found := strings.Cut(line, " ")
	number := strings.TrimRight(mark, ".)")
	return found && (strings.Contains("-*+•", mark) || number != mark && strings.Trim(number, "0123456789") == "")
}

// split divides a text at the ends of its sentences, but not inside of quotation marks and brackets. The answer to a question, and a remark of a
// few letters, stay with what stands before them, which they may take back.
func split(text string) (all []string) {
	from, to := 0, 0 // of the sentence before the one that is read
	depth, quoted := 0, false
	end := func(at int) {
		if s := strings.TrimSpace(text[to:at]); utf8.RuneCountInString(s) >= remark && !strings.HasSuffix(text[:to], "?") && !strings.HasSuffix(text[:to], "？") {
			all = append(all, strings.TrimSpace(text[from:to]))
			from = to
		}
		to = at
	}
	for i, r := range text {
		switch {
		case r == '"' || r == '`':
			quoted = !quoted
		case strings.ContainsRune("([{“„«「『", r):
			depth++
		case strings.ContainsRune(")]}”»」』", r):
			depth = max(depth-1, 0)
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		if after := i + size; !quoted && depth == 0 && endsSentence(r, text[after:]) {
			end(after)
		}
	}
	end(len(text))
	all = append(all, strings.TrimSpace(text[from:]))
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// endsSentence reports whether a sentence ends with r, given what follows. After an abbreviation it goes on in lower case.
func endsSentence(r rune, rest string) bool {
	if strings.ContainsRune("。！？", r) {
		return true
	}
	if !strings.ContainsRune(".!?:", r) {
		return false
	}
	space, n := utf8.DecodeRuneInString(rest)
	next, _ := utf8.DecodeRuneInString(rest[n:])
	return unicode.IsSpace(space) && !unicode.IsLower(next)
}
