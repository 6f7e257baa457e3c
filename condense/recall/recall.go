// Package recall searches the messages that a view hides. It returns the lines that match a query, or whole messages by
// their ids. It is pure and calls no model.
package recall

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
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
	ID     string // as formatted by EventID
	Source string // where the text comes from: "user", "assistant", "tool result"
	Text   string
}

// NewEvent returns a message as an event. Its text includes the names and argument values of its tool calls.
func NewEvent(id string, kind session.Kind, c session.Content) Event {
	e := Event{ID: id, Source: kind.String()}
	switch {
	case kind == session.Observation, kind == session.User && c.Role == "tool": // the latter is what another agent said
		e.Source = "tool result"
	case kind.ByModel():
		e.Source = "assistant"
	}
	var text strings.Builder
	text.WriteString(c.Text)
	for _, call := range c.Calls {
		text.WriteString("\ncalled " + call.Name)
		for value := range excerpt.Values(call.Arguments) {
			text.WriteString("\n" + value)
		}
	}
	e.Text = text.String()
	return e
}

// Room limits the length of an answer.
type Room struct {
	Tokens int
	Count  func(string) int // counts tokens
}

// Limits of a search.
const (
	maxLines      = 12      // lines in an answer
	maxLineBytes  = 320     // longer lines are cut to the part around the match
	maxQueryBytes = 1 << 10 // the rest of a query is ignored
	maxQueryWords = 32      // distinct words; further ones are ignored
)

// Ranking parameters.
const (
	bm25K1      = 1.2
	bm25B       = 0.75
	eventWeight = 0.3 // weight of a match elsewhere in the same event
	phraseScore = 1e6 // score of the whole query in one line; more than words alone can add up to
)

// line is a line of an event that matches the query.
type line struct {
	event  int // index in the events searched
	text   string
	words  int   // number of words
	counts []int // occurrences of each term; nil if no term occurs
	score  float64
}

// Lines quotes the lines that match a query, within the given room. Lines that contain the whole query come first, then the
// others in the order of their BM25 score.
func Lines(events []Event, query string, room Room) string {
	query = strings.TrimSpace(strings.ToValidUTF8(query[:min(len(query), maxQueryBytes)], ""))
	found := find(events, query)
	if len(found) == 0 {
		return "Nothing that is hidden says that. Try other words, or a name or a path exactly as it was written."
	}
	out := ""
	quoted := 0
	for _, l := range found[:min(len(found), maxLines)] {
		e := &events[l.event]
		next := fmt.Sprintf("[event %s, %s] %s\n", e.ID, e.Source, window(l.text, query))
		if room.Count(out+next) > room.Tokens {
			break
		}
		out += next
		quoted++
	}
	if left := len(found) - quoted; left > 0 {
		more := fmt.Sprintf("%d more lines match. Ask for less, or for a whole event by its id.", left)
		if room.Count(out+more) <= room.Tokens {
			out += more
		}
	}
	return strings.TrimSuffix(out, "\n")
}

// Whole quotes events in full while there is room, and both ends of the first one that does not fit.
func Whole(events []Event, room Room) string {
	out := ""
	for _, e := range events {
		head := fmt.Sprintf("[event %s, %s]\n", e.ID, e.Source)
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

// search holds a query and the counts that BM25 needs.
type search struct {
	query, lower string   // as asked, and in lower case
	terms        []string // distinct words of the query in lower case, sorted

	lines, words int      // totals over all events
	lineCount    []int    // by term: lines that contain it
	eventCount   []int    // by term: events that contain it
	eventHas     [][]bool // by event and term
}

// find returns the matching lines, best first, among equals the newest. Of identical lines only the newest counts.
func find(events []Event, query string) (found []line) {
	s := search{query: query, lower: strings.ToLower(query), eventHas: make([][]bool, len(events))}
	for _, w := range words(s.lower) {
		if i, known := slices.BinarySearch(s.terms, w); !known && len(s.terms) < maxQueryWords {
			s.terms = slices.Insert(s.terms, i, w)
		}
	}
	s.lineCount = make([]int, len(s.terms))
	s.eventCount = make([]int, len(s.terms))
	seen := map[string]bool{}
	for i, event := range slices.Backward(events) {
		s.eventHas[i] = make([]bool, len(s.terms))
		for text := range strings.Lines(event.Text) {
			text = strings.TrimSpace(text)
			if text == "" || seen[text] {
				continue
			}
			seen[text] = true
			if l, matches := s.read(i, text); matches {
				found = append(found, l)
			}
		}
	}
	for i := range found {
		found[i].score = s.score(&found[i])
	}
	slices.SortStableFunc(found, func(a, b line) int { return cmp.Compare(b.score, a.score) })
	return found
}

// read counts the words and terms of a line. It reports whether the line contains a term or the whole query.
func (s *search) read(event int, text string) (l line, matches bool) {
	lower := strings.ToLower(text)
	l = line{event: event, text: text}
	for _, w := range words(lower) {
		l.words++
		i, isTerm := slices.BinarySearch(s.terms, w)
		if !isTerm {
			continue
		}
		if l.counts == nil {
			l.counts = make([]int, len(s.terms))
		}
		l.counts[i]++
		if l.counts[i] == 1 {
			s.lineCount[i]++
		}
		if !s.eventHas[event][i] {
			s.eventHas[event][i] = true
			s.eventCount[i]++
		}
	}
	s.lines++
	s.words += l.words
	return l, l.counts != nil || strings.Contains(lower, s.lower)
}

func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !isWord(r) })
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// ContainsWord reports whether a text contains a term that is not part of a longer word.
func ContainsWord(text, term string) bool { return indexWord(text, term) >= 0 }

// indexWord returns the index of the first occurrence of a term that is not part of a longer word, or -1.
func indexWord(text, term string) int {
	for from := 0; ; {
		at := strings.Index(text[from:], term)
		if at < 0 {
			return -1
		}
		at += from
		end := at + len(term)
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[end:])
		first, _ := utf8.DecodeRuneInString(text[at:])
		last, _ := utf8.DecodeLastRuneInString(text[:end])
		if !(isWord(before) && isWord(first)) && !(isWord(last) && isWord(after)) {
			return at
		}
		from = at + 1
	}
}

// score returns the BM25 score of a line plus a share of that of its event. The whole query scores above everything.
func (s *search) score(l *line) (score float64) {
	mean := float64(s.words)/float64(s.lines) + 1
	for i, count := range l.counts { // in a fixed order, since the sum of floats depends on it
		if n := float64(count); n > 0 {
			score += idf(s.lineCount[i], s.lines) * n * (bm25K1 + 1) / (n + bm25K1*(1-bm25B+bm25B*float64(l.words)/mean))
		}
		if s.eventHas[l.event][i] {
			score += eventWeight * idf(s.eventCount[i], len(s.eventHas))
		}
	}
	switch {
	case ContainsWord(l.text, s.query):
		score += 3 * phraseScore
	case strings.Contains(l.text, s.query):
		score += 2 * phraseScore
	case strings.Contains(strings.ToLower(l.text), s.lower):
		score += phraseScore
	}
	return score
}

// idf is the inverse document frequency of a term that n of total documents contain.
func idf(n, total int) float64 {
	return math.Log(1 + (float64(total-n)+0.5)/(float64(n)+0.5))
}

// window cuts a long line to the part around the first match.
func window(text, query string) string {
	if len(text) <= maxLineBytes {
		return text
	}
	at := indexWord(text, query)
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
	from := min(max(at-(maxLineBytes-min(len(query), maxLineBytes))/2, 0), len(text)-maxLineBytes)
	to := min(from+max(maxLineBytes, min(len(query), 4*maxLineBytes)), len(text))
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	return "..." + text[from:to] + "..."
}

// Span is a range of events, First to Last inclusive. Back counts threads: 0 is the current one, 1 the one before it.
type Span struct{ First, Last, Back int }

// EventID formats the id of an event: its position, followed by "@back" if it is in an earlier thread.
func EventID(position, back int) string {
	if back == 0 {
		return strconv.Itoa(position)
	}
	return strconv.Itoa(position) + "@" + strconv.Itoa(back)
}

// number is a number in an id, with the mark of an earlier thread.
var number = regexp.MustCompile("(@?)([0-9]+)")

// ParseSpan reads an id or a range of ids in any of the notations that models use. It reports false if there is none.
func ParseSpan(text string) (s Span, ok bool) {
	for at := number.FindStringSubmatchIndex(text); at != nil; at = number.FindStringSubmatchIndex(text) {
		n, err := strconv.Atoi(text[at[4]:at[5]])
		marked := at[2] < at[3]
		text = text[at[1]:]
		switch {
		case err != nil:
			return Span{}, false
		case marked:
			s.Back = n
		case s.First == 0:
			s.First = n
		case s.Last == 0:
			s.Last = n
		}
	}
	s.Last = max(s.First, s.Last)
	return s, s.First > 0
}
