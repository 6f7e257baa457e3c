package retention

import (
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/condense/recall"
)

// Bounds of statements and of what ties two of them.
const (
	minStatement = 6  // words of a statement
	minTopic     = 4  // letters of a word that says what a statement is about
	minShared    = 3  // such words that two statements share if the later one relies on the earlier one
	common       = 20 // a word that more than one in so many messages have says nothing of what a statement is about
	alwaysRare   = 3  // messages that may have a word in any case
)

// statement is a sentence that an agent wrote: a plan, a decision, a finding.
type statement struct {
	message int
	words   map[string]int
	topics  []string // its longer words in lower case, sorted
}

// relied is an earlier statement on which the moment's action relies.
type relied struct {
	statement
	far bool // it was made more than farUnits units ago
}

// statements returns the sentences in what an agent wrote in message i, without fenced blocks.
func statements(i int, text string) (all []statement) {
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		for _, s := range sentencesOf(line) {
			if w := words(s); !fenced && sizeOf(w) >= minStatement {
				all = append(all, statement{message: i, words: w, topics: topicsOf(s)})
			}
		}
	}
	return all
}

func sentencesOf(line string) (all []string) {
	from := 0
	for i, r := range line {
		if strings.ContainsRune(".!?", r) && strings.HasPrefix(line[i+1:], " ") {
			all = append(all, line[from:i+1])
			from = i + 1
		}
	}
	return append(all, line[from:])
}

func sizeOf(words map[string]int) (n int) {
	for _, times := range words {
		n += times
	}
	return n
}

// topicsOf returns the longer words of a text.
func topicsOf(text string) []string {
	all := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !isWord(r) })
	all = slices.DeleteFunc(all, func(w string) bool {
		return utf8.RuneCountInString(w) < minTopic || !strings.ContainsFunc(w, unicode.IsLetter)
	})
	slices.Sort(all)
	return slices.Compact(all)
}

// rely finds for each statement of the moment's action the earlier statement of the agent that it relies on: the one that shares most of the rare
// words with it, at least minShared, of several the newest. What the head or a system message names does not count, since it cannot be lost, nor
// does what is in the latest exchange.
func (m *moment) rely() (all []relied) {
	for _, later := range m.run.statements[m.at] {
		topics := slices.DeleteFunc(slices.Clone(later.topics), func(w string) bool { return !m.isRare(w) })
		best, shared := statement{}, minShared-1
		for i := m.at - 1; i >= 0; i-- {
			for _, s := range m.run.statements[i] {
				if n := sharedBy(topics, s.topics); n > shared {
					best, shared = s, n
				}
			}
		}
		if shared >= minShared && !m.protected[best.message] && !m.head[best.message] &&
			!slices.ContainsFunc(all, func(r relied) bool { return r.message == best.message && slices.Equal(r.topics, best.topics) }) {
			all = append(all, relied{best, best.message < m.recent()})
		}
	}
	return all
}

// isRare reports whether a word says what a statement is about.
func (m *moment) isRare(word string) bool {
	in := m.run.naming(word)
	before := in[:sort.SearchInts(in, m.at)]
	return len(before) <= max(alwaysRare, m.at/common) && !slices.ContainsFunc(before, m.lasts)
}

// naming returns the messages that have a word, in any case.
func (r *run) naming(word string) []int {
	if in, known := r.named[word]; known {
		return in
	}
	var in []int
	for i, text := range r.lower {
		if recall.ContainsWord(text, word) {
			in = append(in, i)
		}
	}
	r.named[word] = in
	return in
}

// sharedBy returns how many words two sorted lists share.
func sharedBy(a, b []string) (n int) {
	for len(a) > 0 && len(b) > 0 {
		switch strings.Compare(a[0], b[0]) {
		case -1:
			a = a[1:]
		case 1:
			b = b[1:]
		default:
			n++
			a, b = a[1:], b[1:]
		}
	}
	return n
}

// stated reports whether a statement is to be seen: its message as it was, or at least half of its words in one line.
func (r *relied) stated(s shown) bool {
	if s.whole[r.message] {
		return true
	}
	return slices.ContainsFunc(s.texts, func(text string) bool {
		for line := range strings.Lines(text) {
			if survived(r.words, words(line)) {
				return true
			}
		}
		return false
	})
}
