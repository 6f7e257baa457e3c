// Package recall finds again what a view of a history does not show: lines by what they say, or whole messages by their ids. It is
// pure, and asks no model.
package recall

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/condense/excerpt"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Event is a message that can be recalled.
type Event struct {
	ID   string // as Name gives it
	What string // kind of message
	Text string
}

// Of is a message as it is recalled: its text, and what its calls were given.
func Of(id string, kind session.Kind, c session.Content) Event {
	e := Event{ID: id, What: kind.String()}
	switch kind {
	case session.Observation:
		e.What = "tool result"
	case session.Action, session.Agent:
		e.What = "assistant"
	}
	var text strings.Builder
	text.WriteString(c.Text)
	for _, call := range c.Calls {
		text.WriteString("\ncalled " + call.Name)
		excerpt.Values(call.Arguments, func(value string) { text.WriteString("\n" + value) })
	}
	e.Text = text.String()
	return e
}

// Room is how much may be answered.
type Room struct {
	Tokens int
	Count  func(string) int
}

const (
	mostLines = 12      // lines that are quoted at most
	longLine  = 320     // bytes of a line that are quoted at most
	longQuery = 1 << 10 // bytes of a query that count
	mostWords = 32      // distinct words of a query that count
)

// The weights of BM25, and of the whole message that a line stands in.
const (
	saturation = 1.2
	lengthened = 0.75
	ofMessage  = 0.3
)

// line is a line of an event that has something of what is asked for.
type line struct {
	event int
	text  string
	words int   // in all
	has   []int // how often it has each word that is asked for; nil: it has none
	score float64
}

// Lines quotes the lines of events that say what a query asks for: those that have it word for word first, then by BM25, in so much room.
func Lines(events []Event, query string, room Room) string {
	query = strings.TrimSpace(strings.ToValidUTF8(query[:min(len(query), longQuery)], ""))
	found := find(events, query)
	if len(found) == 0 {
		return "Nothing that is hidden says that. Try other words, or a name or a path exactly as it was written."
	}
	out, quoted := "", 0
	for _, l := range found {
		e := &events[l.event]
		next := fmt.Sprintf("[event %s, %s] %s\n", e.ID, e.What, window(l.text, query))
		if room.Count(out+next) > room.Tokens {
			break
		}
		out += next
		if quoted++; quoted == mostLines {
			break
		}
	}
	if left := len(found) - quoted; left > 0 {
		if more := fmt.Sprintf("%d more lines match. Ask for less, or for a whole event by its id.", left); room.Count(out+more) <= room.Tokens {
			out += more
		}
	}
	return strings.TrimSuffix(out, "\n")
}

// Whole gives events word for word, as far as the room goes: of the one that does not fit, the beginning and the end.
func Whole(events []Event, room Room) string {
	out := ""
	for _, e := range events {
		head := fmt.Sprintf("[event %s, %s]\n", e.ID, e.What)
		if next := out + head + e.Text + "\n"; room.Count(next) <= room.Tokens {
			out = next
			continue
		}
		const cut = "\n[... left out; ask for lines by a query ...]\n"
		for half := len(e.Text) / 2; half > 0; half = half * 3 / 4 {
			text := strings.ToValidUTF8(e.Text[:half], "") + cut + strings.ToValidUTF8(e.Text[len(e.Text)-half/2:], "")
			if room.Count(out+head+text) <= room.Tokens {
				return out + head + text
			}
		}
		break
	}
	return strings.TrimSuffix(out, "\n")
}

// search is what is asked for, and where it stands.
type search struct {
	query, lower    string
	asked           []string // words, in lower case
	lines, words    int      // of all events
	inLine, inEvent []int    // how many lines and events have each word
	eventHas        [][]bool // by event
}

// find gives the lines that match, the best first; of equals the newer. Of lines that say the same, the newest counts.
func find(events []Event, query string) (found []line) {
	s := search{query: query, lower: strings.ToLower(query), eventHas: make([][]bool, len(events))}
	for _, w := range words(s.lower) { // the first count
		if i, known := slices.BinarySearch(s.asked, w); !known && len(s.asked) < mostWords {
			s.asked = slices.Insert(s.asked, i, w)
		}
	}
	s.inLine, s.inEvent = make([]int, len(s.asked)), make([]int, len(s.asked))
	seen := map[string]bool{}
	for i, event := range slices.Backward(events) {
		s.eventHas[i] = make([]bool, len(s.asked))
		for text := range strings.Lines(event.Text) {
			if text = strings.TrimSpace(text); text == "" || seen[text] {
				continue
			}
			seen[text] = true
			if l, matches := s.look(i, text); matches {
				found = append(found, l)
			}
		}
	}
	for i := range found {
		found[i].score = s.score(&found[i], len(events))
	}
	slices.SortStableFunc(found, func(a, b line) int { return cmp.Compare(b.score, a.score) })
	return found
}

// look counts the words of a line, and those that are asked for. It reports whether the line has any of those, or all of the query.
func (s *search) look(event int, text string) (l line, matches bool) {
	lower := strings.ToLower(text)
	l, matches = line{event: event, text: text}, strings.Contains(lower, s.lower)
	for _, w := range words(lower) {
		l.words++
		i, asked := slices.BinarySearch(s.asked, w)
		if !asked {
			continue
		}
		if matches = true; l.has == nil {
			l.has = make([]int, len(s.asked))
		}
		if l.has[i]++; l.has[i] == 1 {
			s.inLine[i]++
		}
		if !s.eventHas[event][i] {
			s.eventHas[event][i] = true
			s.inEvent[i]++
		}
	}
	s.lines, s.words = s.lines+1, s.words+l.words
	return l, matches
}

// words are those of a text.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !isWord(r) })
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// Names reports whether a text names a term: it is there, and no part of a longer word.
func Names(text, term string) bool { return named(text, term) >= 0 }

// named is where a text names a term, -1 if it does not.
func named(text, term string) int {
	for from := 0; ; {
		at := strings.Index(text[from:], term)
		if at < 0 {
			return -1
		}
		at += from
		if apart(text, at, at+len(term)) {
			return at
		}
		from = at + 1
	}
}

// apart reports whether text[from:to] begins and ends where words do.
func apart(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	first, _ := utf8.DecodeRuneInString(text[from:])
	last, _ := utf8.DecodeLastRuneInString(text[:to])
	return !(isWord(before) && isWord(first)) && !(isWord(last) && isWord(after))
}

// score is BM25 of a line, and of the message that it stands in. One that has the query word for word is above all others.
func (s *search) score(l *line, events int) (score float64) {
	mean := float64(s.words)/float64(s.lines) + 1
	for i, count := range l.has { // always in the same order: sums of floats differ by it
		if n := float64(count); n > 0 {
			score += rarity(s.inLine[i], s.lines) * n * (saturation + 1) / (n + saturation*(1-lengthened+lengthened*float64(l.words)/mean))
		}
		if s.eventHas[l.event][i] {
			score += ofMessage * rarity(s.inEvent[i], events)
		}
	}
	switch {
	case Names(l.text, s.query):
		score += 3 * exact
	case strings.Contains(l.text, s.query):
		score += 2 * exact
	case strings.Contains(strings.ToLower(l.text), s.lower):
		score += exact
	}
	return score
}

// exact is more than words can be worth.
const exact = 1e6

// rarity is what it says that one of so many has a word which so many have.
func rarity(having, of int) float64 {
	return math.Log(1 + (float64(of-having)+0.5)/(float64(having)+0.5))
}

// window is the part of a line around what was asked for, if all of it is too long.
func window(text, query string) string {
	if len(text) <= longLine {
		return text
	}
	at := named(text, query)
	if at < 0 {
		at = strings.Index(text, query)
	}
	lower := strings.ToLower(text)
	for _, w := range words(strings.ToLower(query)) {
		if at >= 0 {
			break
		}
		at = strings.Index(lower, w)
	}
	from := min(max(at-(longLine-min(len(query), longLine))/2, 0), len(text)-longLine)
	to := min(from+max(longLine, min(len(query), 4*longLine)), len(text))
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	return "..." + text[from:to] + "..."
}

// Span is the events First to Last of a history, or of the one that is Back threads before it.
type Span struct{ First, Last, Back int }

// Name is the id of an event: its position, and for one of an earlier thread which of those it is in.
func Name(position, back int) string {
	if back == 0 {
		return strconv.Itoa(position)
	}
	return strconv.Itoa(position) + "@" + strconv.Itoa(back)
}

// ParseSpan reads an id, or two of them that a range begins and ends with, however models write them. It reports false where there is none.
func ParseSpan(text string) (s Span, ok bool) {
	for rest := text; ; {
		at := strings.IndexAny(rest, "0123456789")
		if at < 0 {
			break
		}
		digits := rest[at:]
		digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789"))]
		n, err := strconv.Atoi(digits)
		switch {
		case err != nil:
			return Span{}, false
		case at > 0 && rest[at-1] == '@':
			s.Back = n
		case s.First == 0:
			s.First = n
		case s.Last == 0:
			s.Last = n
		}
		rest = rest[at+len(digits):]
	}
	s.Last = max(s.First, s.Last)
	return s, s.First > 0
}
