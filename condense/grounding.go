package condense

import (
	"strings"
	"unicode"

	"github.com/dewpoint-proxy/dewpoint/condense/ground"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// grounded returns a record that a model wrote without the lines that repeat the instructions or name something it was not shown, and how many
// lines stayed of those that name something. It returns a *SummaryError if too much of the record repeats the instructions, or if too few of
// its lines stay.
func grounded(text, instructions string, shown ...string) (string, session.Grounding, error) {
	text, copied := withoutRepeated(text, instructions)
	if copied {
		return "", session.Grounding{}, FaultMalformed.errorf("the reply repeats the instructions")
	}
	r := ground.Check(text, shown...)
	g := session.Grounding{Grounded: r.Grounded, Lines: r.Lines}
	if !r.Enough() || r.Record == "" {
		return "", g, FaultUngrounded.errorf("only %s lines name what was shown", g)
	}
	return r.Record, g, nil
}

// texts returns all texts of the history and of the summary that the view shows, as the model of a conversation has read them.
func (s *span) texts() (all []string) {
	all = []string{s.previous.Text(), s.previous.Excerpts}
	for _, m := range s.history {
		all = append(all, m.Content.Text)
		for _, c := range m.Content.Calls {
			all = append(all, c.ID, c.Name, c.Arguments)
		}
	}
	return all
}

// shownTo returns the instructions of a request for a record, and what was shown besides: the given texts, and what the operator and the client
// say of the record.
func (j *llmJob) shownTo(asked Request, texts []string) (instructions string, shown []string) {
	own := j.instructions()
	instructions = strings.TrimSuffix(asked.System, own) + "\n" + j.form.ask(j.words())
	if asked.Function != nil {
		instructions += "\n" + string(asked.Function.JSON)
	}
	if asked.Body != nil {
		texts = []string{string(asked.Body)}
	}
	return instructions, append([]string{own}, texts...)
}

// minRepeated is the number of words from which a line that the instructions have as well is a repetition. A text that repeats lines is a copy if
// it has fewer than minOwn lines of that length besides.
const minRepeated, minOwn = 4, 2

// withoutRepeated returns a text without the lines that the instructions have as well, and whether hardly anything else is in it.
func withoutRepeated(text, instructions string) (rest string, copied bool) {
	words := " " + strings.Join(wordsOf(instructions), " ") + " "
	var kept strings.Builder
	repeated, own := 0, 0
	for line := range strings.Lines(text) {
		if repeats(line, words) {
			repeated++
			continue
		}
		kept.WriteString(line)
		if len(wordsOf(line)) >= minRepeated {
			own++
		}
	}
	return kept.String(), repeated > 0 && own < minOwn
}

// repeats reports whether a line, or what follows the heading in it, stands in the instructions, whose words are given. Marks do not count, nor
// does where lines break.
func repeats(line, words string) bool {
	for _, part := range [...]string{line, afterHeading(line)} {
		if w := wordsOf(part); len(w) >= minRepeated && strings.Contains(words, " "+strings.Join(w, " ")+" ") {
			return true
		}
	}
	return false
}

// afterHeading returns what follows the heading in a line, or "" if it has none.
func afterHeading(line string) string {
	_, text, _ := record.Heading(strings.TrimLeft(line, " \t-*0123456789."))
	if _, bold, ok := strings.Cut(line, "**: "); ok {
		return bold
	}
	return text
}

// wordsOf returns the words of a text in lower case.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
