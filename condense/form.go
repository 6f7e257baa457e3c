package condense

import (
	"fmt"
	"strings"
)

// form is how a summariser is to write a record, and how its reply is read.
type form interface {
	// system is the prompt's unchanging part.
	system(f Focus) string
	// ask is the prompt's last sentence.
	ask(words int) string
	// shape adds to a request what the form takes.
	shape(r *Request)
	// record takes the record from a reply. What is wrong with one is a *SummaryError.
	record(r Reply) (string, error)
}

// prose is a record in plain text, with sections.
type prose struct{}

func (prose) system(f Focus) string {
	return instructionsOpen + recordIn(f)
}

// behind is what a model is told behind the conversation itself.
func (prose) behind(f Focus) string { return rideOpen + recordIn(f) }

func recordIn(f Focus) string {
	return " Use these sections, in this order, and leave out\nthose that would be empty:\n\n" + f.sections() + "\n" +
		instructionsExact + "; keep the section names as they are.\nOutput only the record: no preamble, no code fence, no comment."
}

func (prose) ask(words int) string {
	return fmt.Sprintf("Write the record now, in at most %d words. Output only the record.", words)
}

func (prose) shape(*Request) {}

func (prose) record(r Reply) (string, error) {
	text, err := ReadReply(r)
	if err == nil && !sectioned(text) {
		err = &SummaryError{Kind: FaultMalformed, Detail: "none of the sections"}
	}
	if err != nil {
		return "", err
	}
	return text, nil
}

// sectioned reports whether a text has a section at least. Its name may have been translated or made a heading: what counts is a
// line that begins with a word in capitals and a colon, a markdown heading or bold text.
func sectioned(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(line, " \t-0123456789.")
		name, _, colon := strings.Cut(line, ":")
		capitals := colon && len(name) > 2 && name == strings.ToUpper(name) && name != strings.ToLower(name)
		if capitals || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "**") {
			return true
		}
	}
	return false
}
