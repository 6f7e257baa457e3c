package record

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// wordsBytes is how much of one message is kept, in bytes: half from its beginning and half from its end. What people paste is
// long; what they ask for stands around it.
const wordsBytes = 2 << 10

// Words are what the user wrote in what is forgotten, word for word.
type Words struct {
	said []said
}

type said struct {
	id   int // of the event
	text string
}

// Forget takes in a message that is forgotten. Messages come oldest first. The same text counts once, where it was said last.
func (w *Words) Forget(id int, kind session.Kind, c session.Content) {
	if kind != session.User {
		return
	}
	text := ends(strings.TrimSpace(typed(c.Text)))
	if text == "" {
		return
	}
	w.said = slices.DeleteFunc(w.said, func(s said) bool { return s.text == text })
	w.said = append(w.said, said{id, text})
}

// Text is as many of the messages as fit a number of tokens, the newest first, but in the order in which they were written. What
// the record holds word for word is left out. Empty if nothing is missing.
func (w *Words) Text(record string, tokens int, count func(string) int) string {
	var lines []string
	for _, s := range slices.Backward(w.said) {
		if strings.Contains(record, s.text) {
			continue
		}
		line := fmt.Sprintf("- [%d] %s", s.id, s.text)
		if cost := count(line) + 1; cost <= tokens {
			lines, tokens = append(lines, line), tokens-cost
		}
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

// typed is a user's message without what agents put into it unasked: reminders, environments, what commands printed.
func typed(text string) string {
	for _, tag := range agents.InjectedTags() {
		for {
			before, rest, found := strings.Cut(text, "<"+tag+">")
			if !found {
				break
			}
			_, after, _ := strings.Cut(rest, "</"+tag+">")
			text = before + "\n" + after
		}
	}
	return text
}

// ends leaves out the middle of a long text.
func ends(text string) string {
	if len(text) <= wordsBytes {
		return text
	}
	return strings.ToValidUTF8(text[:wordsBytes/2]+"\n[...]\n"+text[len(text)-wordsBytes/2:], "")
}
