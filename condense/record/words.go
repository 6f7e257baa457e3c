package record

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Maximum sizes of what is kept of a message, half from either end: requests stand around long pastes.
const (
	maxWordsBytes = 2 << 10 // if there is room
	minWordsBytes = 128     // if there is little
	sentenceBytes = 64      // of its beginning, before whole messages are dropped
	pasteBytes    = 400     // of a fenced block
)

// Format of the list of messages.
const (
	lineMark  = "- "
	lineBreak = "\n" + lineMark
)

// Messages with the same beginning are taken for a template: agents without tool calls send the output of tools in the
// user's name, with a fixed beginning. Short templates may still be typed by a person; long ones are taken for output.
const (
	headBytes     = 12      // length of the beginning that is compared
	templateCount = 4       // minimum number of messages with the same beginning
	outputBytes   = 8 << 10 // templates with more bytes in total are taken for output
)

// Words collects the user's messages among the hidden ones, verbatim, with the marks of their attachments. Which of them are
// kept depends only on the room, with templates last: not on their content, nor on what a record or a tool says about them.
type Words struct {
	texts []string         // oldest first; empty where the same text follows later
	last  map[string]int   // by text: its last index in texts
	heads map[string]group // by beginning
}

// group is the number and the total size of the texts with the same beginning.
type group struct{ texts, bytes int }

// Add adds a message and returns its beginning, or "" if nothing was added. Messages must be added oldest first. Of equal
// texts only the last counts. Of a summary that the client sends back only the user's words in it are added.
func (w *Words) Add(kind session.Kind, c session.Content) (head string) {
	if kind != session.User {
		return ""
	}
	if s, ok := Carried(c.Text); ok {
		for line := range strings.SplitSeq(s.Words, lineBreak) {
			w.Add(kind, session.Content{Text: strings.TrimPrefix(line, lineMark)})
		}
		return ""
	}
	text := cutBlocks(typed(c.Text), false)
	if len(text) > maxWordsBytes { // a block may contain a fence, or never be closed
		text = cutBlocks(text, true)
	}
	text = Attached(ends(strings.TrimSpace(text), maxWordsBytes), c)
	if text == "" {
		return ""
	}
	if w.last == nil {
		w.last, w.heads = map[string]int{}, map[string]group{}
	}
	head = headOf(text)
	if i, repeated := w.last[text]; repeated {
		w.texts[i] = ""
	} else {
		g := w.heads[head]
		w.heads[head] = group{g.texts + 1, g.bytes + len(text)}
	}
	w.last[text] = len(w.texts)
	w.texts = append(w.texts, text)
	return head
}

// Carried reads a message of the user's that may be a summary which the client sends back. It reports whether it is one.
func Carried(text string) (s Summary, ok bool) {
	_, ok = between(text, recordOpen, recordClose)
	return Parse(text), ok
}

func headOf(text string) string { return text[:min(len(text), headBytes)] }

// IsTemplate reports whether messages with the given beginning are a template, as far as they have been added.
func (w *Words) IsTemplate(head string) bool { return w.heads[head].texts >= templateCount }

// Text lists the messages, oldest first, within a number of tokens. If there is no room for all, long messages are cut so
// that they do not push out short ones; if that is not enough, the newest are kept. Templates get the remaining room, and
// those taken for output only as much as keeps the whole text within outputTokens.
func (w *Words) Text(tokens, outputTokens int, count func(string) int) string {
	typed, templates, output := w.classify()
	kept, left := w.fit(typed, tokens, count)
	more, left := w.fit(templates, left, count)
	maps.Copy(kept, more)
	more, _ = w.fit(output, left-max(tokens-outputTokens, 0), count)
	maps.Copy(kept, more)
	var lines []string
	for _, i := range slices.Sorted(maps.Keys(kept)) {
		lines = append(lines, kept[i])
	}
	return strings.Join(lines, "\n")
}

// fit cuts messages as little as it takes to fit all, or as many as possible. It returns lines by index and tokens left.
func (w *Words) fit(indexes []int, tokens int, count func(string) int) (lines map[int]string, left int) {
	all := false
	for limit := maxWordsBytes; !all && limit >= sentenceBytes; limit /= 2 {
		lines, left, all = w.newest(indexes, limit, tokens, count)
	}
	return lines, left
}

// Fits reports whether all messages except for templates taken for output fit a number of tokens, cut as far as Text cuts them.
func (w *Words) Fits(tokens int, count func(string) int) bool {
	typed, templates, _ := w.classify()
	_, _, all := w.newest(append(typed, templates...), sentenceBytes, tokens, count)
	return all
}

// Tokens returns the size of all messages except for templates taken for output.
func (w *Words) Tokens(count func(string) int) int {
	typed, templates, _ := w.classify()
	_, left, _ := w.newest(append(typed, templates...), maxWordsBytes, math.MaxInt, count)
	return math.MaxInt - left
}

// classify returns the indexes of the messages, newest first: typed ones, short templates, and templates taken for output.
func (w *Words) classify() (typed, templates, output []int) {
	for i, text := range slices.Backward(w.texts) {
		switch head := headOf(text); {
		case text == "":
		case !w.IsTemplate(head):
			typed = append(typed, i)
		case w.heads[head].bytes <= outputBytes:
			templates = append(templates, i)
		default:
			output = append(output, i)
		}
	}
	return typed, templates, output
}

// newest cuts each message to limit bytes and selects those that fit a number of tokens, in the order of indexes, which is
// newest first. It returns the lines by index and the number of tokens left, and reports whether all messages fit.
func (w *Words) newest(indexes []int, limit, tokens int, count func(string) int) (lines map[int]string, left int, all bool) {
	lines, left, all = map[int]string{}, tokens, true
	for _, i := range indexes {
		line := lineMark + shorten(w.texts[i], limit)
		cost := count(line) + 1
		if cost <= left {
			lines[i] = line
			left -= cost
			continue
		}
		all = false
		if limit > sentenceBytes {
			break
		}
	}
	return lines, left, all
}

// TypedText returns what a person typed of a user's message. It returns "" for a summary that the client sends back.
func TypedText(text string) string {
	if _, ok := Carried(text); ok {
		return ""
	}
	return typed(text)
}

// typed removes the elements that agents insert into a user's message: reminders, environments, the output of commands. An
// opening tag that is never closed removes nothing. A closing tag that nothing opened extends the last element of the same
// name: command output may contain its own closing tag, and then the text up to the next one is output, too.
func typed(text string) string {
	if isOutput(text) {
		return ""
	}
	open := map[string][]int{} // by name: beginnings of the elements not closed yet, innermost last
	last := map[string]int{}   // by name: beginning of the element closed last
	ends := map[int]int{}      // end of each element by its beginning
	for t := range tags(text, agents.InjectedTags()) {
		starts := open[t.name]
		if !t.closes {
			open[t.name] = append(starts, t.from)
			continue
		}
		if n := len(starts) - 1; n >= 0 {
			last[t.name] = starts[n]
			open[t.name] = starts[:n]
		}
		if from, ok := last[t.name]; ok {
			ends[from] = t.to
		}
	}
	var b strings.Builder
	at := 0
	for _, from := range slices.Sorted(maps.Keys(ends)) { // elements may overlap
		if from >= at {
			b.WriteString(text[at:from] + "\n")
		}
		at = max(at, ends[from])
	}
	left := b.String() + text[at:]
	if heading := strings.TrimSpace(left); at > 0 && strings.HasPrefix(heading, agents.InjectedHeading) {
		_, left, _ = strings.Cut(heading, "\n")
	}
	return left
}

// isOutput reports whether a message consists of command output alone: it begins and ends with such an element. Whatever
// stands between is output as well, even if it looks like something else.
func isOutput(text string) bool {
	text = strings.TrimSpace(text)
	begins, ends := false, false
	for _, name := range agents.InjectedTags() {
		if strings.HasSuffix(name, "stdout") || strings.HasSuffix(name, "stderr") {
			begins = begins || strings.HasPrefix(text, "<"+name+">")
			ends = ends || strings.HasSuffix(text, "</"+name+">")
		}
	}
	return begins && ends
}

// IsTyped reports whether a person typed a part of a user's message or attached something.
func IsTyped(c session.Content) bool {
	return strings.TrimSpace(typed(c.Text)) != "" || len(c.Images)+len(c.Files) > 0
}

// HasInjected reports whether an agent inserted a part of a user's message.
func HasInjected(c session.Content) bool { return typed(c.Text) != c.Text }

// cutBlocks cuts to its ends what stands between an opening and a closing fence, or with all between any two fences. A fence that is never
// closed cuts nothing without all.
func cutBlocks(text string, all bool) string {
	var b strings.Builder
	written := 0 // text[:written] is in b, cut
	at := 0      // beginning of the line
	block := 0   // beginning of the block's contents
	fence := ""  // opened the block; empty outside of a block
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		isFence := strings.HasPrefix(bare, "```") || strings.HasPrefix(bare, "~~~")
		opens := isFence && fence == ""
		closes := isFence && fence != "" && strings.Trim(bare, fence[:1]) == ""
		if closes || isFence && all {
			b.WriteString(text[written:block] + ends(text[block:at], pasteBytes))
			written = at
		}
		at += len(line)
		switch {
		case opens:
			fence, block = bare[:3], at
		case closes:
			fence, block = "", at
		case isFence && all:
			block = at
		}
	}
	if all {
		return b.String() + text[written:block] + ends(text[block:], pasteBytes)
	}
	return b.String() + text[written:]
}

// shorten cuts a text to its ends, or below minWordsBytes to its first sentences if they fill half of the limit.
func shorten(text string, limit int) string {
	if len(text) <= limit || limit >= minWordsBytes {
		return ends(text, limit)
	}
	first := text[:limit]
	if at := strings.LastIndexAny(first, ".!?;\n"); at > limit/2 {
		first = first[:at+1]
	}
	return strings.TrimSpace(strings.ToValidUTF8(first, "")) + " [...]"
}

// ends cuts the middle out of a text of more than limit bytes.
func ends(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit/2]+"\n[...]\n"+text[len(text)-limit/2:], "")
}
