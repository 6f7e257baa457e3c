package record

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// How much of one message is kept, in bytes: half from its beginning and half from its end. What people paste is long; what they
// ask for stands around it.
const (
	wordsBytes    = 2 << 10 // of a message where there is room
	minWordsBytes = 128     // where there is little
	sentenceBytes = 64      // where there is none, before messages are left out: of its beginning
	pasteBytes    = 400     // of a fenced block
)

// How messages are listed.
const (
	lineMark  = "- "
	lineBreak = "\n" + lineMark
)

// What makes messages a template: agents without tool calls send what tools print as the user's, and begin it alike. What a person
// begins alike is less than what they print.
const (
	headBytes     = 12      // of a message's beginning
	templateCount = 4       // messages that begin so
	printedBytes  = 8 << 10 // they have together
)

// Words are what the user wrote in what is forgotten, word for word, with the marks of what was attached.
// Nothing but the room for them decides what is kept, after what is a template and was hardly typed: not what they say, and not what
// a record or a tool says about them.
type Words struct {
	said  []string         // as it was written, the oldest first; empty if it was said again later
	last  map[string]int   // where each text was said last
	heads map[string]alike // of texts that begin so
}

// alike is how many texts begin alike, and their length.
type alike struct{ texts, bytes int }

// Forget takes in a message that is forgotten, and gives its beginning. Messages come oldest first. The same text counts once, where
// it was said last. Of a record of ours that the client sends back, what it holds of the user's words counts.
func (w *Words) Forget(kind session.Kind, c session.Content) (head string) {
	if kind != session.User {
		return ""
	}
	if said, ours := carried(c.Text); ours {
		for line := range strings.SplitSeq(said, lineBreak) {
			w.Forget(kind, session.Content{Text: strings.TrimPrefix(line, lineMark)})
		}
		return ""
	}
	text := Attached(ends(strings.TrimSpace(withoutPastes(typed(c.Text))), wordsBytes), c)
	if text == "" {
		return ""
	}
	if w.last == nil {
		w.last, w.heads = map[string]int{}, map[string]alike{}
	}
	head = headOf(text)
	if at, again := w.last[text]; again {
		w.said[at] = ""
	} else {
		w.heads[head] = alike{w.heads[head].texts + 1, w.heads[head].bytes + len(text)}
	}
	w.last[text] = len(w.said)
	w.said = append(w.said, text)
	return head
}

// carried gives the user's words in a record of ours, and reports whether a text is one.
func carried(text string) (said string, ours bool) {
	_, ours = between(text, recordOpen, recordClose)
	return Parse(text).Words, ours
}

func headOf(text string) string { return text[:min(len(text), headBytes)] }

// Template reports whether messages with a beginning are a template, as far as messages were taken in.
func (w *Words) Template(head string) bool { return w.heads[head].texts >= templateCount }

// Text is the messages within a number of tokens, in the order in which they were written. Where there is no room for all, long ones
// are cut until there is, so that they do not push out short ones; where even that does not help, the newest stay. Templates take the
// room that is left, and printed ones no more than fits a smaller number of tokens with all the others.
func (w *Words) Text(tokens, printed int, count func(string) int) string {
	said, templates, prints := w.sorts()
	kept, left := w.fitting(said, tokens, count)
	more, left := w.fitting(templates, left, count)
	maps.Copy(kept, more)
	more, _ = w.fitting(prints, left-max(tokens-printed, 0), count)
	maps.Copy(kept, more)
	var lines []string
	for _, at := range slices.Sorted(maps.Keys(kept)) {
		lines = append(lines, kept[at])
	}
	return strings.Join(lines, "\n")
}

// fitting is as many of some messages as fit, in the longest form in which all of them do, and the tokens that are left.
func (w *Words) fitting(sort []int, tokens int, count func(string) int) (lines map[int]string, left int) {
	for limit, all := wordsBytes, false; limit >= sentenceBytes && !all; limit /= 2 {
		lines, left, all = w.newest(sort, limit, tokens, count)
	}
	return lines, left
}

// Fit reports whether a number of tokens has room for all messages but templates, the long ones cut.
func (w *Words) Fit(tokens int, count func(string) int) bool {
	said, _, _ := w.sorts()
	_, _, all := w.newest(said, sentenceBytes, tokens, count)
	return all
}

// Tokens is how many all messages but printed ones take.
func (w *Words) Tokens(count func(string) int) int {
	said, templates, _ := w.sorts()
	_, left, _ := w.newest(append(said, templates...), wordsBytes, math.MaxInt, count)
	return math.MaxInt - left
}

// sorts tells where in said messages are, the newest first: what was typed, templates that are no more than a person types, and those that
// are.
func (w *Words) sorts() (said, templates, prints []int) {
	for at, text := range slices.Backward(w.said) {
		switch head := headOf(text); {
		case text == "":
		case !w.Template(head):
			said = append(said, at)
		case w.heads[head].bytes <= printedBytes:
			templates = append(templates, at)
		default:
			prints = append(prints, at)
		}
	}
	return said, templates, prints
}

// newest is as many of the messages, the newest first, as fit, each cut to that many bytes: a line each, by where they are in said. It gives
// the tokens that are left, and reports whether all fit.
func (w *Words) newest(sort []int, limit, tokens int, count func(string) int) (lines map[int]string, left int, all bool) {
	lines, left, all = map[int]string{}, tokens, true
	for _, at := range sort {
		line := lineMark + shortened(w.said[at], limit)
		if cost := count(line) + 1; cost <= left {
			lines[at], left = line, left-cost
		} else if all = false; limit > sentenceBytes {
			break
		}
	}
	return lines, left, all
}

// TypedText is a user's message as typed. Of a record of ours that the client sends back it is nothing.
func TypedText(text string) string {
	if _, ours := carried(text); ours {
		return ""
	}
	return typed(text)
}

// typed is a user's message without the elements that agents put into it unasked: reminders, environments, what commands printed. An
// opening tag that is never closed cuts nothing. A closing tag that nothing opened ends the element before it, of the same name: what
// was printed may hold its own closing tag, and what follows that was printed, too.
func typed(text string) string {
	if printed(text) {
		return ""
	}
	open, last := map[string][]int{}, map[string]int{}
	end := map[int]int{} // of elements, by their beginning
	for t := range tags(text, agents.InjectedTags()) {
		from, opened := open[t.name], len(open[t.name]) > 0
		switch at, closed := last[t.name]; {
		case !t.closes:
			open[t.name] = append(from, t.from)
		case opened:
			last[t.name], open[t.name] = from[len(from)-1], from[:len(from)-1]
			end[last[t.name]] = t.to
		case closed:
			end[at] = t.to
		}
	}
	if len(end) == 0 {
		return text
	}
	return without(text, end)
}

// without leaves out ranges, by their beginnings. They may overlap.
func without(text string, end map[int]int) string {
	var b strings.Builder
	at := 0
	for _, from := range slices.Sorted(maps.Keys(end)) {
		if from >= at {
			b.WriteString(text[at:from] + "\n")
		}
		at = max(at, end[from])
	}
	return b.String() + text[at:]
}

// printed reports whether a message is nothing but what a command printed: it begins and ends with such an element, and whatever
// stands between was printed, however much it looks like something else.
func printed(text string) bool {
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

// Typed reports whether a person typed a user's message, or a part of it, or attached something.
func Typed(c session.Content) bool {
	return strings.TrimSpace(typed(c.Text)) != "" || len(c.Images)+len(c.Files) > 0
}

// Injected reports whether a part of a user's message was put there by an agent, unasked.
func Injected(c session.Content) bool { return typed(c.Text) != c.Text }

// withoutPastes cuts long fenced blocks. A fence that is never closed cuts nothing, unless the message is too long as it is: since a
// block may hold a fence, so that its end looks like a beginning, what stands between any two of them is then cut to its ends.
func withoutPastes(text string) string {
	if text = withoutBlocks(text, false); len(text) > wordsBytes {
		text = withoutBlocks(text, true)
	}
	return text
}

// withoutBlocks cuts the blocks of a text to their ends: those from an opening to a closing fence, or all that stands between fences.
func withoutBlocks(text string, all bool) string {
	var b strings.Builder
	at, from, block, fence := 0, 0, 0, "" // the line, what is not written yet, the block, and what opened it
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		marks := strings.HasPrefix(bare, "```") || strings.HasPrefix(bare, "~~~")
		opens, closes := marks && fence == "", marks && fence != "" && strings.Trim(bare, fence[:1]) == ""
		if closes || marks && all {
			b.WriteString(text[from:block] + ends(text[block:at], pasteBytes))
			from = at
		}
		switch at += len(line); {
		case opens:
			fence, block = bare[:3], at
		case closes:
			fence, block = "", at
		case marks && all:
			block = at
		}
	}
	if all {
		return b.String() + text[from:block] + ends(text[block:], pasteBytes)
	}
	return b.String() + text[from:]
}

// shortened is a text cut to its ends, or to its beginning where that is all there is room for: its first sentences, if they are most
// of that.
func shortened(text string, limit int) string {
	if len(text) <= limit || limit >= minWordsBytes {
		return ends(text, limit)
	}
	first := text[:limit]
	if at := strings.LastIndexAny(first, ".!?;\n"); at > limit/2 {
		first = first[:at+1]
	}
	return strings.TrimSpace(strings.ToValidUTF8(first, "")) + " [...]"
}

// ends leaves out the middle of a long text.
func ends(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit/2]+"\n[...]\n"+text[len(text)-limit/2:], "")
}
