package record

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/lineartest"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestReadersAreLinear checks that the functions that read message content take time linear in its length.
func TestReadersAreLinear(t *testing.T) {
	quick.Alone(t)
	for name, read := range map[string]func(string){
		"words": func(text string) {
			w := &Words{}
			w.Add(session.User, session.Content{Text: text})
			w.Text(1000, 1000, quarter)
		},
		"defuse":    func(text string) { Defuse(text) },
		"printable": func(text string) { _ = Printable(text) },
		"string":    func(text string) { _ = Summary{Record: text, Words: text, Excerpts: text}.String() },
		"parse":     func(text string) { Parse(text) },
		"wrapped":   func(text string) { Parse(recordOpen + text + recordClose) },
		"unwrap":    func(text string) { Unwrap(text) },
	} {
		t.Run(name, func(t *testing.T) { lineartest.Check(t, read) })
	}
}
