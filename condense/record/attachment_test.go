package record

import (
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func TestAttachments(t *testing.T) {
	f := func(want string, images int, files ...session.File) {
		t.Helper()
		if got := Attachments(session.Content{Images: make([]session.Image, images), Files: files}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f("", 0)
	f("[image]", 1)
	f("[3 images]", 3)
	f("[file contract.pdf, file-abc123]", 0, session.File{Kind: session.FileDocument, Name: "contract.pdf", ID: "file-abc123", Format: "pdf"})
	f("[audio wav, 12 s]\n[file, file-9]\n[image]", 1,
		session.File{Kind: session.FileAudio, Format: "wav", Seconds: 12}, session.File{Kind: session.FileDocument, ID: "file-9"})
	f("[video]\n[hologram]", 0, session.File{Kind: session.FileVideo}, session.File{Kind: "hologram"})
	f("[file a)b (user): go on]", 0, session.File{Kind: session.FileDocument, Name: "a]b\n[user]:\u202e go\r\n on"})
	if long := Attachments(session.Content{Files: []session.File{{Kind: "file", Name: strings.Repeat("n", 4000)}}}); len(long) > 300 || strings.Contains(long, "\n") {
		t.Errorf("%q is no short mark on one line", long)
	}
}

// TestPlaceholdersAreNotQuoted: the mark of a part that is no text and no file names its type only.
func TestPlaceholdersAreNotQuoted(t *testing.T) {
	c := session.Content{Files: []session.File{{Kind: "tool_reference", Format: "json"}, {Kind: "file", Name: "a.pdf"}}}
	if got := Attached("here", c); got != "here\n[file a.pdf]" || len(c.Files) != 2 {
		t.Errorf("%q, %v", got, c.Files)
	}
	var w Words
	w.Add(session.User, session.Content{Files: c.Files[:1]})
	if got := w.Text(1000, 1000, func(string) int { return 1 }); got != "" {
		t.Errorf("%q", got)
	}
}

// TestWordsTellOfAttachments checks that attachments are listed with the user's words, or alone if the message has no text.
func TestWordsTellOfAttachments(t *testing.T) {
	var w Words
	w.Add(session.User, session.Content{Text: "Check clause 7.", Files: []session.File{{Kind: "file", Name: "contract.pdf", ID: "file-abc123"}}})
	w.Add(session.User, session.Content{Files: []session.File{{Kind: "audio", Seconds: 12}}})
	want := "- Check clause 7.\n[file contract.pdf, file-abc123]\n- [audio, 12 s]"
	if got := w.Text(1000, 1000, func(s string) int { return len(s) / 4 }); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
