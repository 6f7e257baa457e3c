package record

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Defuse makes text safe to quote in a prompt: it cannot open or close our tags or the marks of a chat template.
func Defuse(text string) string {
	return newFence(text).run()
}

// inert makes text safe to stand in a summary. Besides our own tags and those of templates it defuses tags named after a
// role, and turns lines that look like a speaker's turn into list items.
func inert(text string) string {
	f := newFence(text, "system", "developer", "user", "human", "assistant", "tool", "function", "instruction")
	f.speakers = []string{"system", "developer", "user", "human", "assistant", "tool", "ai"}
	f.headings = []string{"instruction", "instructions", "response", "input"}
	return strings.TrimSpace(f.run())
}

// fence replaces the marks that it finds in the skeleton of a text: angle brackets become single angle quotes, square ones
// round. It also removes control characters and invalid UTF-8. It is idempotent.
type fence struct {
	text     string
	skeleton skeleton

	tags               []string // beginnings of the names of tags
	speakers, headings []string // names that begin a turn, headings only in a markdown heading; nil: lines are not checked

	out     strings.Builder
	written int // text[:written] has been processed and is in out
}

// newFence returns a fence against our own tags, those of templates, and those whose names begin with one of tags, in lower case.
func newFence(text string, tags ...string) *fence {
	text = Printable(text)
	return &fence{text: text, skeleton: readSkeleton(text), tags: append(tags, templateTags...)}
}

// run makes one pass over the skeleton. It skips from a bracket to the name at once, so that long runs take linear time.
func (f *fence) run() string {
	s := f.skeleton.text
	for i := 0; i < len(s); {
		if i == 0 || s[i-1] == '\n' {
			if t, speaks := f.turnAt(i); speaks { // the line becomes an undecorated list item
				f.replace(i, t.name, "- ")
				f.replace(t.end, t.rest, ":")
				i = t.rest
				continue
			}
		}
		switch s[i] {
		case '<':
			i = f.bracket(i, "</!? \t\n", f.tags)
		case '[':
			i = f.bracket(i, "[/ \t\n", templateBrackets)
		case ']':
			i = f.bracket(i, "]", templateClosings)
		case '|':
			i++
			if i < len(s) && s[i] == '>' {
				f.replace(i, i+1, "›")
				i++
			}
		default:
			i++
		}
	}
	return f.out.String() + f.text[f.written:]
}

// harmless has the replacements for the characters of marks.
var harmless = map[byte]string{'<': "‹", '[': "(", ']': ")"}

// bracket defuses the brackets at i, with characters of between among them, if a mark follows. It returns where that begins.
func (f *fence) bracket(i int, between string, marks []string) int {
	s := f.skeleton.text
	end := skip(s, i, between)
	if n := strings.LastIndexByte(s[i:end], '\n'); n >= 0 {
		if _, speaks := f.turnAt(i + n + 1); speaks {
			return i + n + 1
		}
	}
	bar := s[i] == '<' && strings.HasPrefix(s[end:], "|")
	if !bar && prefixLen(s[end:], marks) == 0 {
		return end
	}
	for ; i < end; i++ {
		if by, ok := harmless[s[i]]; ok {
			f.replace(i, i+1, by)
		}
	}
	return end
}

// decoration holds the characters that markdown may put around a speaker's name.
const decoration = " \t>*_~`#"

// turn is a line that looks like a speaker's: where the name begins and ends, and where the speech begins.
type turn struct{ name, end, rest int }

// turnAt reads the line that begins at i.
func (f *fence) turnAt(i int) (t turn, ok bool) {
	s := f.skeleton.text
	t.name = skip(s, i, decoration)
	n := prefixLen(s[t.name:], f.speakers)
	if strings.Contains(s[i:t.name], "#") {
		n = max(n, prefixLen(s[t.name:], f.headings))
	}
	t.end = t.name + n
	colon := skip(s, t.end, decoration)
	if n == 0 || colon == len(s) || s[colon] != ':' {
		return t, false
	}
	t.rest = skip(s, colon+1, "*_~`")
	return t, true
}

// skip returns the index in s after any characters of chars at from.
func skip(s string, from int, chars string) int {
	return len(s) - len(strings.TrimLeft(s[from:], chars))
}

// prefixLen returns the length of the longest of names that s begins with.
func prefixLen(s string, names []string) int {
	n := 0
	for _, name := range names {
		if len(name) > n && strings.HasPrefix(s, name) {
			n = len(name)
		}
	}
	return n
}

// replace substitutes the text that corresponds to the range [from, to) of the skeleton.
func (f *fence) replace(from, to int, by string) {
	start, end := f.skeleton.at[from], f.skeleton.at[to]
	if end <= start && to > from { // one character whose skeleton is longer
		_, size := utf8.DecodeRuneInString(f.text[start:])
		end = start + size
	}
	if start < f.written {
		return
	}
	f.out.WriteString(f.text[f.written:start] + by)
	f.written = end
}

// Printable removes all characters that are neither printable nor a line feed or tab.
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

// Our own marks and those of chat templates: text that a server may take for the beginning or end of a turn. Marks that begin with <|
// are found without being listed.
var (
	templateTags = []string{
		"dewpoint",                     // our own
		"im_start", "im_end", "im_sep", // ChatML without its bars
		"start_of_turn", "end_of_turn", "bos>", "eos>", "pad>", "unk>", "mask>", // Gemma
		"sys>", "s>", // Llama 2, Mistral
		"sop>", "eop>", "sep>", "cls>", "endoftext", "reserved_", // GLM, Baichuan
		"seed:", "minimax:", "antml:", "invoke",
	}
	templateBrackets = []string{
		"inst]", "sys]", "system_prompt]", "available_tools]", "tool_calls]", "tool_results]", "tool_content]", "call_id]", "think]", // Mistral
		"gmask]", "smask]", "mask]", "sep]", "cls]", "bos]", "eos]", "pad]", "unk]", // GLM, BERT
		"e~[", // MiniMax, with those that close
	}
	templateClosings = []string{"~b]", "~!b["}
)
