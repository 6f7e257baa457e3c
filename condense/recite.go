package condense

import (
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// maxRuleTokens is the maximum size of the rules that a record repeats.
const maxRuleTokens = 1000

// standingRules returns what a record repeats at its end: what the user marked, and those lines of the record's USER_CONTEXT that say what the user
// said. If there is no room for all, the marked ones come first, the newest of them before others.
func (s *span) standingRules(text string, count func(string) int) string {
	typed := map[string]bool{} // words
	var marked []string
	for _, m := range s.history {
		if m.Kind != session.User {
			continue
		}
		for _, word := range wordsOf(record.TypedText(m.Content.Text)) {
			typed[word] = true
		}
		for _, rule := range Marked(m.Content.Text) {
			marked = append(marked, strings.Join(strings.Fields(rule), " "))
		}
	}
	slices.Reverse(marked)
	seen := map[string]bool{}
	var rules []string
	for _, rule := range append(marked, userContext(text, typed)...) {
		line := "- " + rule
		if !seen[rule] && count(strings.Join(append(rules, line), "\n")) <= maxRuleTokens {
			rules = append(rules, line)
		}
		seen[rule] = true
	}
	return strings.Join(rules, "\n")
}

// userContext returns the lines of a record's section on the user that the user's own words bear out: what a tool says is no rule of the user's,
// even if a model believes it.
func userContext(text string, typed map[string]bool) (lines []string) {
	inside := false
	for line := range strings.Lines(text) {
		line = strings.Trim(line, " \t\r\n")
		if name, rest, ok := record.Heading(line); ok {
			inside = strings.EqualFold(strings.ReplaceAll(name, " ", "_"), "USER_CONTEXT")
			line = strings.TrimSpace(rest)
		}
		line = strings.TrimSpace(strings.TrimLeft(line, "-*"))
		if inside && saidBy(typed, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// saidShare is the percentage of a line's words that the user must have typed for it to be the user's.
const saidShare = 75

func saidBy(typed map[string]bool, line string) bool {
	words := wordsOf(line)
	said := 0
	for _, word := range words {
		if typed[word] {
			said++
		}
	}
	return len(words) > 0 && 100*said >= saidShare*len(words)
}
