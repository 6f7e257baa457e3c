// Package excerpt chooses which lines of hidden messages to quote: those that name what the agent is likely to come back to.
// It calls no model, takes time linear in the length of the history, and is pure: the same history gives the same lines.
package excerpt

import (
	"slices"
	"strings"
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

	message, unit int  // messages and units so far; every message but a tool result begins a unit
	agent         bool // the agent wrote the text being read
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
	known       bool // the view or a chosen line contains it
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
	text  string
	event int  // number of the message; 0: not shown
	terms span // in Index.termIDs
	cost  int
	lines span // in Index.lines
	taken int  // lines chosen
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
	x.agent = m.Kind.ByModel()
	x.shown, x.event = m.Shown, m.Event
	x.open(x.markOf(m))
	x.read(m.Content.Text)
	for _, c := range m.Content.Calls {
		x.calls[c.ID] = callMark(c)
		x.open(x.calls[c.ID])
		if !m.Shown && x.lineStart < len(x.termIDs) {
			x.addLine("", 0) // the mark may be quoted without a line below it
		}
		for value := range Values(c.Arguments) {
			x.read(value)
		}
	}
}

// AddShown reads a text that the view shows in addition to the messages. Its terms need no quoting.
func (x *Index) AddShown(text string) {
	x.agent, x.shown = false, true
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
	m := mark{text: text, event: x.event, terms: span{x.lineStart, len(x.termIDs)}, lines: span{at, at}}
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
			n := splitAt(l)
			x.readLine(l[:n])
			l = l[n:]
		}
		x.readLine(l)
		text = rest
	}
}

// splitAt returns where to split a long line: after a separator in the second half of the part that fits, if there is one.
func splitAt(l string) int {
	if n := strings.LastIndexAny(l[maxLineBytes/2:maxLineBytes], " ,;\t"); n >= 0 {
		return maxLineBytes/2 + n + 1
	}
	n := maxLineBytes
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
