package record

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// attachmentBytes is the maximum length of a name or an id in a mark.
const attachmentBytes = 200

// Attachments returns the marks that stand for the images and files of a hidden message, one per line. Each mark holds what
// identifies the attachment: "[file contract.pdf, file-abc123]", "[audio, 12 s]". The result is empty if there are none.
func Attachments(c session.Content) string {
	var marks []string
	for _, f := range c.Files {
		mark := strings.TrimSpace(sanitise(f.Kind) + " " + sanitise(f.Name))
		if f.Name == "" && f.Format != "" {
			mark += " " + sanitise(f.Format)
		}
		if f.ID != "" {
			mark += ", " + sanitise(f.ID)
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

// sanitise returns text from a client on a single line and without square brackets, so that it cannot close a mark.
func sanitise(text string) string {
	text = strings.Join(strings.Fields(ends(Printable(text), attachmentBytes)), " ")
	return strings.NewReplacer("[", "(", "]", ")").Replace(text)
}

// Attached returns text followed by the marks of the message's attachments, to be quoted. It leaves out parts of types that are no file: what
// they mean is not in their mark.
func Attached(text string, c session.Content) string {
	c.Files = slices.DeleteFunc(slices.Clone(c.Files), func(f session.File) bool {
		return f.Kind != session.FileDocument && f.Kind != session.FileAudio && f.Kind != session.FileVideo
	})
	return strings.TrimSpace(text + "\n" + Attachments(c))
}
