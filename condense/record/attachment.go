package record

import (
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// attachmentBytes is how much of a name or an id is shown.
const attachmentBytes = 200

// Attachments are the marks that the images and files of a message leave where it is hidden, one a line, each with all that
// finds it again: "[file contract.pdf, file-abc123]", "[audio, 12 s]". Empty if it has none.
func Attachments(c session.Content) string {
	var marks []string
	for _, f := range c.Files {
		mark := strings.TrimSpace(shown(f.Kind) + " " + shown(f.Name))
		if f.Name == "" && f.Format != "" {
			mark += " " + shown(f.Format)
		}
		if f.ID != "" {
			mark += ", " + shown(f.ID)
		}
		if f.Seconds > 0 {
			mark += fmt.Sprintf(", %d s", f.Seconds)
		}
		marks = append(marks, "["+mark+"]")
	}
	switch n := len(c.Images); {
	case n == 1:
		marks = append(marks, "[image]")
	case n > 1:
		marks = append(marks, fmt.Sprintf("[%d images]", n))
	}
	return strings.Join(marks, "\n")
}

// shown is what a client wrote, on one line, and such that it closes no mark.
func shown(text string) string {
	text = strings.Join(strings.Fields(ends(Printable(text), attachmentBytes)), " ")
	return strings.NewReplacer("[", "(", "]", ")").Replace(text)
}

// Attached is a text with the marks of the message's attachments below it.
func Attached(text string, c session.Content) string {
	return strings.TrimSpace(text + "\n" + Attachments(c))
}
