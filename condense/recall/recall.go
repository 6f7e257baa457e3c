// Package recall finds again what a view of a history does not show: lines by what they say, or whole messages by their ids. It is
// pure, and asks no model.
package recall

import (
	"cmp"
	"fmt"
	"math"
	"slices"
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
	mostLines = 12  // lines that are quoted at most
	longLine  = 320 // bytes of a line that are quoted at most
)

// The weights of BM25, and of the whole message that a line stands in.
const (
	saturation = 1.2
	lengthened = 0.75
	ofMessage  = 0.3
)

// line is a line of an event.
type line struct {
	event int
	text  string
	words []string
	score float64
}

// Lines quotes the lines of events that say what a query asks for: those that have it word for word first, then by BM25, in so much room.
func Lines(events []Event, query string, room Room) string {
	query = strings.TrimSpace(query)
	found := rank(linesOf(events), len(events), query)
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

// linesOf are the lines of events. Of those that say the same, the newest counts.
func linesOf(events []Event) (all []line) {
	seen := map[string]bool{}
	for i := len(events) - 1; i >= 0; i-- {
		for text := range strings.Lines(events[i].Text) {
			if text = strings.TrimSpace(text); text != "" && !seen[text] {
				seen[text] = true
				all = append(all, line{event: i, text: text, words: words(text)})
			}
		}
	}
	return all
}

// words are those of a text, in lower case.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// rank gives the lines that match, the best first; of equals the newer.
func rank(lines []line, events int, query string) []line {
	asked := slices.Compact(slices.Sorted(slices.Values(words(query))))
	inLine, inEvent := map[string]int{}, map[string]int{}
	perEvent, total := make([]map[string]bool, events), 0
	for _, l := range lines {
		total += len(l.words)
		for _, w := range asked {
			if !slices.Contains(l.words, w) {
				continue
			}
			inLine[w]++
			if perEvent[l.event] == nil {
				perEvent[l.event] = map[string]bool{}
			}
			if !perEvent[l.event][w] {
				perEvent[l.event][w] = true
				inEvent[w]++
			}
		}
	}
	mean := float64(total)/float64(max(len(lines), 1)) + 1
	lower := strings.ToLower(query)
	var found []line
	for _, l := range lines {
		l.score = l.match(asked, func(w string) float64 { return rarity(inLine[w], len(lines)) }, mean)
		if l.score > 0 {
			for _, w := range asked { // always in the same order: sums of floats differ by it
				if perEvent[l.event][w] {
					l.score += ofMessage * rarity(inEvent[w], events)
				}
			}
		}
		switch {
		case query != "" && strings.Contains(l.text, query):
			l.score += 2 * exact
		case query != "" && strings.Contains(strings.ToLower(l.text), lower):
			l.score += exact
		}
		if l.score > 0 {
			found = append(found, l)
		}
	}
	slices.SortStableFunc(found, func(a, b line) int { return cmp.Compare(b.score, a.score) })
	return found
}

// exact is more than words can be worth.
const exact = 1e6

// match is BM25 of a line.
func (l *line) match(asked []string, worth func(string) float64, mean float64) (score float64) {
	for _, w := range asked {
		n := 0.0
		for _, own := range l.words {
			if own == w {
				n++
			}
		}
		if n > 0 {
			score += worth(w) * n * (saturation + 1) / (n + saturation*(1-lengthened+lengthened*float64(len(l.words))/mean))
		}
	}
	return score
}

// rarity is what it says that one of so many has a word which so many have.
func rarity(having, of int) float64 {
	return math.Log(1 + (float64(of-having)+0.5)/(float64(having)+0.5))
}

// window is the part of a line around what was asked for, if all of it is too long.
func window(text, query string) string {
	if len(text) <= longLine {
		return text
	}
	at := strings.Index(text, query)
	for _, w := range words(query) {
		if at >= 0 {
			break
		}
		at = strings.Index(strings.ToLower(text), w)
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
