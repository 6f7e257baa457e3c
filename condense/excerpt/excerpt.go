// Package excerpt chooses which lines of hidden messages to quote: those that name what the agent is likely to come back to.
// It calls no model, takes time linear in the length of the history, and is pure: the same history gives the same lines.
package excerpt

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Message is a message of a history.
type Message struct {
	Kind     session.Kind
	Content  session.Content
	Shown    bool // the view shows the message: its terms need no quoting, and its lines are not candidates
	Injected bool // an agent inserted a part of it: its lines are not attributed to the user
	Event    int  // its number, shown in marks; 0: not shown
}

// Index holds the terms and lines of a history. It serves a single call of Text.
type Index struct {
	scanner
	ids     map[string]int // of terms
	terms   []term
	lines   []line
	termIDs []int          // ids of the terms of lines and marks
	newest  map[string]int // by keyOf: index of the newest line
	marks   []mark
	calls   map[string]string // by call id: the mark of its result

	focus []string // words of what the user asks for, in lower case

	message, unit int  // messages and units so far; every message but a tool result begins a unit
	agent         bool // the agent wrote the text being read
	speaks        bool // it wrote it to the user: a message without calls
	spoken, acted int  // messages of the agent without calls, and others
	shown         bool
	lineStart     int // index in termIDs of the first term of the line being read
	event         int // number of the message being read
}

// term is an exact value that messages contain, such as a path or an identifier.
type term struct {
	messages    int // number of messages that contain it
	lastMessage int // the last message that contains it
	lastUnit    int // the unit of that message
	agentUnit   int // the unit in which the agent last wrote it; 0: never
	number      bool
	narrow      bool // some line contains it and few others
	asked       bool // it is a line that has what the user asks for
	spoken      bool // it is a line that the agent wrote to the user
	known       bool // the view contains it, or a chosen line of the last message that does
	dated       bool // a chosen line of an earlier message contains it
}

type line struct {
	text     string
	mark     int  // in Index.marks
	terms    span // in Index.termIDs
	cost     int  // estimate, in quarters of a token
	excluded bool // an equal newer line exists, or the line was chosen
}

// span is a range of indexes.
type span struct{ from, to int }

// mark is the heading above the quoted lines of a message.
type mark struct {
	text    string
	message int  // the message, as in term.lastMessage
	event   int  // number of the message; 0: not shown
	terms   span // in Index.termIDs
	cost    int
	lines   span // in Index.lines
	taken   int  // lines chosen
}

// New returns an empty index.
func New() *Index {
	x := &Index{ids: map[string]int{}, newest: map[string]int{}, calls: map[string]string{}}
	x.class = classes()
	x.emit = x.addTerm
	return x
}

// Add reads a message. Messages must be added oldest first.
func (x *Index) Add(m Message) {
	x.message++
	if m.Kind != session.Observation {
		x.unit++
	}
	x.agent, x.speaks = m.Kind.ByModel(), m.Kind == session.Agent && len(m.Content.Calls) == 0
	switch {
	case x.speaks:
		x.spoken++
	case x.agent:
		x.acted++
	}
	x.shown, x.event = m.Shown, m.Event
	x.open(x.markOf(m))
	if len(m.Content.Calls) == 0 {
		x.read(m.Content.Text)
		return
	}
	said, last := splitLastLine(m.Content.Text)
	x.read(said)
	for _, c := range m.Content.Calls {
		x.addCall(last, c)
		last = ""
	}
}

// splitLastLine splits off the last line of a text.
func splitLastLine(text string) (before, last string) {
	text = strings.TrimSpace(text)
	at := strings.LastIndexByte(text, '\n') + 1
	return text[:at], text[at:]
}

// maxCallBytes is the maximum length of what is quoted of a call, and of what the agent said just before it, in one line.
const maxCallBytes = 300

// addCall reads a call. Its beginning is one line with what the agent said just before it: what it did and why. The values of
// a longer call are lines of their own, under the mark of its result.
func (x *Index) addCall(said string, c session.Call) {
	x.calls[c.ID] = callMark(c)
	whole := strings.TrimSpace(c.Arguments)
	args, _, _ := strings.Cut(whole, `\n`)
	if len(args) > maxCallBytes {
		args = args[:splitAt(args, maxCallBytes)]
	}
	line := oneLine(c.Name) + " " + args
	if said != "" && len(said) <= maxCallBytes {
		line, said = said+" "+line, ""
	}
	x.read(said)
	x.readLine(line)
	if len(args) == len(whole) {
		return
	}
	x.open(x.calls[c.ID])
	for value := range Values(whole) {
		x.read(value)
	}
}

// AddShown reads a text that the view shows in addition to the messages. Its terms need no quoting.
func (x *Index) AddShown(text string) {
	x.agent, x.speaks, x.shown = false, false, true
	x.message++
	x.read(text)
}

// open begins a message or one of its calls, whose lines may be quoted under the given mark.
func (x *Index) open(text string) {
	if x.shown {
		return
	}
	x.lineStart = len(x.termIDs)
	x.scan(text)
	at := len(x.lines)
	m := mark{text: text, message: x.message, event: x.event, terms: span{x.lineStart, len(x.termIDs)}, lines: span{at, at}}
	m.cost = x.cost(m.String())
	x.marks = append(x.marks, m)
}

// addLine makes the terms read since lineStart a candidate under the current mark.
func (x *Index) addLine(text string, cost int) {
	m := len(x.marks) - 1
	x.lines = append(x.lines, line{text: text, mark: m, terms: span{x.lineStart, len(x.termIDs)}, cost: cost})
	x.marks[m].lines.to = len(x.lines)
}

// maxLineBytes is the maximum length of a line. Longer lines are split.
const maxLineBytes = 240

func (x *Index) read(text string) {
	for text != "" {
		l, rest, _ := strings.Cut(text, "\n")
		for len(l) > maxLineBytes {
			n := splitAt(l, maxLineBytes)
			x.readLine(l[:n])
			l = l[n:]
		}
		x.readLine(l)
		text = rest
	}
}

// splitAt returns where to split a line of more than limit bytes: after a separator in the second half of the part that fits, if there is one.
func splitAt(l string, limit int) int {
	if n := strings.LastIndexAny(l[limit/2:limit], " ,;\t"); n >= 0 {
		return limit/2 + n + 1
	}
	n := limit
	for n > 0 && !utf8.RuneStart(l[n]) {
		n--
	}
	return max(n, 1)
}

// maxNarrow is the maximum number of terms in a narrow line. Terms that occur only in wider ones, mostly lists, count half.
const maxNarrow = 6

func (x *Index) readLine(text string) {
	x.lineStart = len(x.termIDs)
	x.scan(text)
	x.literals(text)
	if x.speaks {
		x.addSpoken(text)
	}
	x.addAsked(text)
	found := x.termIDs[x.lineStart:]
	if len(found) <= maxNarrow {
		for _, id := range found {
			x.terms[id].narrow = true
		}
	}
	text = strings.TrimSpace(text)
	if x.shown || len(found) == 0 || strings.HasPrefix(text, markOpen) || isNoise(text) {
		x.termIDs = x.termIDs[:x.lineStart]
		return
	}
	at := len(x.lines)
	key := keyOf(text)
	if older, known := x.newest[key]; known {
		x.lines[older].excluded = true
	}
	x.newest[key] = at
	x.addLine(text, x.cost(text)+1)
}

// addSpoken records a line that the agent wrote to the user as a term: a question, an offer, a promise or a figure names nothing that scan
// finds. In a dialogue it is most of what there is to come back to.
func (x *Index) addSpoken(text string) {
	const minWords = 4
	text = strings.TrimSpace(text)
	if strings.Count(text, " ") < minWords-1 || strings.HasPrefix(text, markOpen) || isNoise(text) {
		return
	}
	x.addTerm(spokenMark+text, false)
	x.terms[x.ids[spokenMark+text]].spoken = true
}

// minFocus is the minimum length of a word that counts for Focus, in bytes.
const minFocus = 3

// Focus makes lines that have a word of a text worth more. It must be called before Add.
func (x *Index) Focus(text string) {
	isWord := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '/' || r == '.'
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !isWord(r) }) {
		if word = strings.Trim(word, "./"); len(word) >= minFocus && !slices.Contains(fillers(), word) {
			x.focus = append(x.focus, word)
		}
	}
}

// fillers lists words of a request that name no subject.
func fillers() []string {
	return []string{"focus", "the", "and", "for", "keep", "please", "only", "about", "with", "that", "this", "what", "everything", "all", "part"}
}

// addAsked records a line that has a word of Focus as a term.
func (x *Index) addAsked(text string) {
	if len(x.focus) == 0 || x.shown {
		return
	}
	text = strings.TrimSpace(text)
	lower := strings.ToLower(text)
	if slices.ContainsFunc(x.focus, func(word string) bool { return strings.Contains(lower, word) }) {
		x.addTerm(askedMark+text, false)
		x.terms[x.ids[askedMark+text]].asked = true
	}
}

// askedMark begins the terms of lines that have what the user asks for.
const askedMark = "\x01"

// spokenMark begins the terms of spoken lines. No other term contains it.
const spokenMark = "\x00"

// keyOf returns a key that is equal for lines that differ only in white space and a leading line number.
func keyOf(text string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' {
			return -1
		}
		return r
	}, withoutNumber(text))
}

// addTerm records that the current line contains a term.
func (x *Index) addTerm(text string, number bool) {
	id, known := x.ids[text]
	if !known {
		id = len(x.terms)
		x.ids[text] = id
		x.terms = append(x.terms, term{number: number})
	}
	t := &x.terms[id]
	if t.lastMessage != x.message {
		t.messages++
		t.lastMessage, t.lastUnit = x.message, x.unit
	}
	if x.agent {
		t.agentUnit = x.unit
	}
	t.known = t.known || x.shown
	if !slices.Contains(x.termIDs[x.lineStart:], id) {
		x.termIDs = append(x.termIDs, id)
	}
}

// cost estimates the size of a text in quarters of a token.
func (x *Index) cost(text string) int {
	n := 0
	run := 0 // letters until the current word takes another token
	for i := range len(text) {
		switch x.class[text[i]] {
		case lower, upper:
			if run == 0 {
				n, run = n+4, 6
			}
			run--
			continue
		case digit:
			n += 2
		default:
			if text[i] > ' ' {
				n += 3
			}
		}
		run = 0
	}
	return n
}
