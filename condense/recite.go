package condense

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Maximum of the rules that a record repeats, and of their size in tokens.
const (
	maxRules      = 24
	maxRuleTokens = 1000
)

// minShared is the percentage of the words of a passage or of a line of the record, of the shorter of them, that the other has if both are about the
// same.
const minShared = 60

// typedRule is a text of the user's.
type typedRule struct {
	at   int // its place among the others, oldest first
	text string
}

// standingRules returns what a record repeats at its end: what the user marked, and what the user typed that the record's USER_CONTEXT is about. The
// record only selects: what is repeated is the user's own text.
func (s *span) standingRules(text string, count func(string) int) string {
	var marked, selected []typedRule
	topics := userContext(text)
	for i, typed := range s.typed {
		if s.history[i].Kind != session.User { // a template
			continue
		}
		for _, rule := range Marked(typed) {
			marked = append(marked, typedRule{len(marked) + len(selected), rule})
		}
		for _, passage := range record.Passages(record.TypedText(typed)) {
			if len(topics) > 0 && !strings.Contains(passage, markOpen) && !strings.Contains(passage, markClose) && isAbout(passage, topics) {
				selected = append(selected, typedRule{len(marked) + len(selected), passage})
			}
		}
	}
	slices.Reverse(marked)
	slices.Reverse(selected)
	return rulesWithin(append(marked, selected...), count)
}

// rulesWithin returns, as lines in the order in which they were typed, as many of the rules as there is room for, the first ones first. Of equal
// ones it takes the first.
func rulesWithin(rules []typedRule, count func(string) int) string {
	seen := map[string]bool{}
	var kept []typedRule
	for left := maxRuleTokens; len(rules) > 0 && len(kept) < maxRules; rules = rules[1:] {
		r := rules[0]
		r.text = "- " + strings.ReplaceAll(r.text, "\n", "\n  ")
		words := strings.Join(topicWords(r.text), " ")
		if size := count(r.text) + 1; !seen[words] && size <= left {
			kept = append(kept, r)
			left -= size
		}
		seen[words] = true
	}
	slices.SortFunc(kept, func(a, b typedRule) int { return a.at - b.at })
	lines := make([]string, len(kept))
	for i, r := range kept {
		lines[i] = r.text
	}
	return strings.Join(lines, "\n")
}

// userContext returns the words of each line of a record's section on the user.
func userContext(text string) (lines []map[string]bool) {
	inside := false
	for line := range strings.Lines(text) {
		line = strings.Trim(line, " \t\r\n")
		if name, rest, ok := record.Heading(line); ok {
			inside = strings.EqualFold(strings.ReplaceAll(name, " ", "_"), "USER_CONTEXT")
			line = rest
		}
		if words := setOf(topicWords(line)); inside && len(words) > 0 {
			lines = append(lines, words)
		}
	}
	return lines
}

// isAbout reports whether a passage has most of the words of a line, or a line most of the passage's.
func isAbout(passage string, lines []map[string]bool) bool {
	words := setOf(topicWords(passage))
	return slices.ContainsFunc(lines, func(line map[string]bool) bool {
		shared := 0
		for word := range words {
			if line[word] {
				shared++
			}
		}
		return shared > 1 && 100*shared >= minShared*min(len(words), len(line))
	})
}

func setOf(words []string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, word := range words {
		set[word] = true
	}
	return set
}

// topicWords returns the words of a text, and the characters of those scripts that put no spaces between words.
func topicWords(text string) (words []string) {
	for _, word := range wordsOf(text) {
		from := 0
		for i, r := range word {
			if !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) {
				continue
			}
			if i > from {
				words = append(words, word[from:i])
			}
			from = i + utf8.RuneLen(r)
			words = append(words, word[i:from])
		}
		if from < len(word) {
			words = append(words, word[from:])
		}
	}
	return words
}
