package record

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Defuse makes text unable to open or close a tag of ours, or a mark of a chat template, so that it can be quoted in a prompt.
func Defuse(text string) string {
	return newFence(text, ownTags()).run()
}

// inert makes text that stands in a summary harmless: besides tags of ours and of templates, tags named for a role, and lines that look
// like the turn of a speaker, which become list items.
func inert(text string) string {
	f := newFence(text, slices.Concat(ownTags(), roleTags()))
	f.speakers, f.headings = speakers(), headings()
	return strings.TrimSpace(f.run())
}

// fence changes a text where its skeleton has a mark: angle brackets become single angle quotes, square ones round. Other text stays
// as it is, control characters and invalid UTF-8 left out. Doing it twice is the same as once.
type fence struct {
	text  string
	reads skeleton
	marks marks

	speakers, headings []string // names that begin a turn; none: lines do not matter

	out     strings.Builder
	written int // how much of text is in out
}

func newFence(text string, tags []string) *fence {
	text = Printable(text)
	f := &fence{text: text, reads: readSkeleton(text), marks: templates()}
	f.marks.tags = append(f.marks.tags, tags...)
	return f
}

// run goes once over the skeleton. What stands between a bracket and a name is taken whole, so that a long run costs no more than its
// length.
func (f *fence) run() string {
	s := f.reads.text
	for i := 0; i < len(s); {
		if i == 0 || s[i-1] == '\n' {
			if i = f.speaker(i); i == len(s) {
				break
			}
		}
		switch s[i] {
		case '<':
			i = f.bracket(i, "</!? \t\n", f.marks.tags)
		case '[':
			i = f.bracket(i, "[/ \t\n", f.marks.brackets)
		case ']':
			i = f.bracket(i, "]", f.marks.closings)
		case '|':
			if i++; i < len(s) && s[i] == '>' {
				f.replace(i, i+1, "›")
				i++
			}
		default:
			i++
		}
	}
	return f.out.String() + f.text[f.written:]
}

// bracket defuses the brackets from i on, which may have some of between among them, if a mark follows. It gives where its name begins.
func (f *fence) bracket(i int, between string, marks []string) int {
	s := f.reads.text
	end := skip(s, i, between)
	if n := strings.LastIndexByte(s[i:end], '\n'); n >= 0 {
		if _, speaks := f.turnAt(i + n + 1); speaks {
			return i + n + 1
		}
	}
	if bar := s[i] == '<' && strings.HasPrefix(s[end:], "|"); !bar && begins(s[end:], marks) == 0 {
		return end
	}
	for ; i < end; i++ {
		if n := strings.IndexByte("<[]", s[i]); n >= 0 {
			f.replace(i, i+1, [...]string{"‹", "(", ")"}[n])
		}
	}
	return end
}

// decoration is what markdown may have around a speaker's name.
const decoration = " \t>*_~`#"

// turn is the beginning of a line that looks like the turn of a speaker: where the name begins and ends, and what was said begins.
type turn struct{ name, end, rest int }

// turnAt reads the line that begins at i.
func (f *fence) turnAt(i int) (t turn, ok bool) {
	s := f.reads.text
	t.name = skip(s, i, decoration)
	n := begins(s[t.name:], f.speakers)
	if strings.Contains(s[i:t.name], "#") {
		n = max(n, begins(s[t.name:], f.headings))
	}
	t.end = t.name + n
	colon := skip(s, t.end, decoration)
	if n == 0 || colon == len(s) || s[colon] != ':' {
		return t, false
	}
	t.rest = skip(s, colon+1, "*_~`")
	return t, true
}

// speaker makes the line that begins at i a list item without decoration, if it looks like a turn. It gives how far it read.
func (f *fence) speaker(i int) int {
	t, ok := f.turnAt(i)
	if !ok {
		return i
	}
	f.replace(i, t.name, "- ")
	f.replace(t.end, t.rest, ":")
	return t.rest
}

// skip gives where s goes on after any of chars.
func skip(s string, from int, chars string) int {
	return len(s) - len(strings.TrimLeft(s[from:], chars))
}

// begins is the length of the longest of names that s begins with.
func begins(s string, names []string) int {
	n := 0
	for _, name := range names {
		if len(name) > n && strings.HasPrefix(s, name) {
			n = len(name)
		}
	}
	return n
}

// replace puts another text in the place of what the skeleton has from one byte to another.
func (f *fence) replace(from, to int, by string) {
	start, end := f.reads.at[from], f.reads.at[to]
	if end <= start && to > from { // one character that reads as several
		_, size := utf8.DecodeRuneInString(f.text[start:])
		end = start + size
	}
	if start < f.written {
		return
	}
	f.out.WriteString(f.text[f.written:start] + by)
	f.written = end
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

// Names that begin a tag which text of others must not contain, in lower case. A prefix of a tag's name is enough.
func ownTags() []string { return []string{"dewpoint"} }

func roleTags() []string {
	return []string{"system", "developer", "user", "human", "assistant", "tool", "function", "instruction"}
}

// marks are those of chat templates: what a server may take for a turn's beginning or end if it stands in a message. Those that
// begin with <| need not be here.
type marks struct{ tags, brackets, closings []string }

func templates() marks {
	return marks{
		tags: []string{
			"im_start", "im_end", "im_sep", // ChatML without its bars
			"start_of_turn", "end_of_turn", "bos>", "eos>", "pad>", "unk>", "mask>", // Gemma
			"sys>", "s>", // Llama 2, Mistral
			"sop>", "eop>", "sep>", "cls>", "endoftext", "reserved_", // GLM, Baichuan
			"seed:", "minimax:", "antml:", "invoke",
		},
		brackets: []string{
			"inst]", "sys]", "system_prompt]", "available_tools]", "tool_calls]", "tool_results]", "tool_content]", "call_id]", "think]", // Mistral
			"gmask]", "smask]", "mask]", "sep]", "cls]", "bos]", "eos]", "pad]", "unk]", // GLM, BERT
			"e~[", // MiniMax, with those that close
		},
		closings: []string{"~b]", "~!b["},
	}
}

// speakers begin a line that looks like a turn; headings do in a markdown heading.
func speakers() []string {
	return []string{"system", "developer", "user", "human", "assistant", "tool", "ai"}
}

func headings() []string { return []string{"instruction", "instructions", "response", "input"} }
