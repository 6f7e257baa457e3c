package condense

import "fmt"

// form is how a summariser is to write a record, and how its reply is read.
type form interface {
	// system is the prompt's unchanging part.
	system(g genre) string
	// ask is the prompt's last sentence.
	ask(words int) string
	// shape adds to a request what the form takes.
	shape(r *Request)
	// record takes the record from a reply. What is wrong with one is a *SummaryError.
	record(r Reply) (string, error)
}

// prose is a record in plain text, with sections.
type prose struct{}

func (prose) system(g genre) string {
	return instructionsOpen + " Use these sections, in this order, and leave out\nthose that would be empty:\n\n" + g.sections() + "\n" +
		instructionsExact + "; keep the section names as they are.\nOutput only the record: no preamble, no code fence, no comment."
}

func (prose) ask(words int) string {
	return fmt.Sprintf("Write the record now, in at most %d words. Output only the record.", words)
}

func (prose) shape(*Request) {}

func (prose) record(r Reply) (string, error) { return ReadReply(r) }
