// Package excerpt chooses which lines of forgotten messages are quoted: those that name what the agent is likely to come
// back to. It needs no model, is linear in the length of the history, and pure: the same history gives the same lines.
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
	Shown    bool // the view shows it: what it names needs no quoting. Otherwise its lines may be quoted
	Injected bool // not all of it is what its author wrote: its lines are not quoted as theirs
	Event    int  // its number, which marks name; 0: they do not
}

// Index is what is known of a history's terms and lines. It is made for one choice.
type Index struct {
	scanner
	ids   map[string]int // of terms
	terms []term
	lines []line
	named []int          // terms of lines and marks
	same  map[string]int // the newest of lines that say the same
	marks []mark
	calls map[string]string // marks of calls, by id

	message, unit int
	agent         bool // the agent wrote what is read
	shown         bool
	first         int // in named: the first term of the line that is read
	event         int // number of the message that is read
}

// term is an exact value that messages name.
type term struct {
	messages int // that name it
	seen     int // the last of them
	last     int // unit of that
	used     int // unit in which the agent last wrote it, 0: never
	number   bool
	narrow   bool // it stands in a line that names few others
	told     bool // the view names it, or a line chosen does
}

// line is a line that may be quoted.
type line struct {
	text  string
	mark  int
	terms span
	cost  int  // in quarters of a token, about
	gone  bool // a newer line says the same, or it was chosen
}

// span is a part of Index.named.
type span struct{ from, to int }

// mark is what stands above the lines of a message.
type mark struct {
	text  string
	event int // number of the message; 0: it is not told
	terms span
	cost  int
	lines span // of Index.lines
	taken int
}

// New gives an empty index.
func New() *Index {
	x := &Index{ids: map[string]int{}, same: map[string]int{}, calls: map[string]string{}}
	x.class = classes()
	x.emit = x.name
	return x
}

// Add reads a message. Messages come oldest first.
func (x *Index) Add(m Message) {
	x.message++
	if m.Kind != session.Observation {
		x.unit++
	}
	x.agent, x.shown, x.event = m.Kind == session.Agent || m.Kind == session.Action, m.Shown, m.Event
	x.open(x.markOf(m))
	x.text(m.Content.Text)
	for _, c := range m.Content.Calls {
		x.calls[c.ID] = callMark(c)
		x.open(x.calls[c.ID])
		x.alone()
		Values(c.Arguments, x.text)
	}
}

// Known says that the view shows a text which is none of the messages: what it names needs no quoting.
func (x *Index) Known(text string) {
	x.agent, x.shown = false, true
	x.message++
	x.text(text)
}

// open begins a message, or one of its calls, whose lines may be quoted.
func (x *Index) open(text string) {
	if x.shown {
		return
	}
	x.first = len(x.named)
	x.scan(text)
	at := len(x.lines)
	m := mark{text: text, event: x.event, terms: span{x.first, len(x.named)}, lines: span{at, at}}
	m.cost = x.cost(m.String())
	x.marks = append(x.marks, m)
}

// alone lets the mark that was opened last be quoted without a line below it.
func (x *Index) alone() {
	if m := len(x.marks) - 1; !x.shown && x.marks[m].terms.from < x.marks[m].terms.to {
		x.add(line{mark: m, terms: x.marks[m].terms})
	}
}

func (x *Index) add(l line) {
	x.lines = append(x.lines, l)
	x.marks[l.mark].lines.to = len(x.lines)
}

// longLine is how long a line may be, in bytes: longer ones are cut.
const longLine = 240

// text reads a text line by line.
func (x *Index) text(text string) {
	for text != "" {
		l, rest, _ := strings.Cut(text, "\n")
		for len(l) > longLine {
			n := cutAt(l)
			x.line(l[:n])
			l = l[n:]
		}
		x.line(l)
		text = rest
	}
}

// cutAt is where a long line is cut: behind a separator, if there is one in the second half of what fits.
func cutAt(l string) int {
	if n := strings.LastIndexAny(l[longLine/2:longLine], " ,;\t"); n >= 0 {
		return longLine/2 + n + 1
	}
	n := longLine
	for n > 0 && !utf8.RuneStart(l[n]) {
		n--
	}
	return max(n, 1)
}

// crowded is how many terms make a line one that lists things: those that stand in no other line are worth half.
const crowded = 6

func (x *Index) line(text string) {
	x.first = len(x.named)
	x.scan(text)
	x.literals(text)
	found := x.named[x.first:]
	if len(found) <= crowded {
		for _, id := range found {
			x.terms[id].narrow = true
		}
	}
	if text = strings.TrimSpace(text); x.shown || len(found) == 0 || strings.HasPrefix(text, markOpen) {
		x.named = x.named[:x.first]
		return
	}
	at := len(x.lines)
	key := keyOf(text)
	if older, known := x.same[key]; known {
		x.lines[older].gone = true
	}
	x.same[key] = at
	x.add(line{text: text, mark: len(x.marks) - 1, terms: span{x.first, len(x.named)}, cost: x.cost(text) + 1})
}

// keyOf is the same for lines that differ in nothing but white space and a line number.
func keyOf(text string) string {
	rest := strings.TrimLeft(text, "0123456789")
	if len(rest) < len(text) && strings.IndexAny(rest, "\t:|→ ") == 0 {
		text = rest[1:]
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' {
			return -1
		}
		return r
	}, text)
}

// name notes that the line that is read names a term.
func (x *Index) name(text string, number bool) {
	id, known := x.ids[text]
	if !known {
		id = len(x.terms)
		x.ids[text] = id
		x.terms = append(x.terms, term{number: number})
	}
	t := &x.terms[id]
	if t.seen != x.message {
		t.messages, t.seen, t.last = t.messages+1, x.message, x.unit
	}
	if x.agent {
		t.used = x.unit
	}
	t.told = t.told || x.shown
	if !slices.Contains(x.named[x.first:], id) {
		x.named = append(x.named, id)
	}
}

// cost is about how many quarters of a token a text takes.
func (x *Index) cost(text string) int {
	n, run := 0, 0
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
