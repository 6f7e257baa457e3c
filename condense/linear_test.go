package condense

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/internal/test/lineartest"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// few is a limit below the length of every text that readers are tested with, so that each is cut.
const few = 200

// TestReadersAreLinear checks that cutting texts, showing them to a summariser and reading its answer take linear time.
func TestReadersAreLinear(t *testing.T) {
	quick.Alone(t)
	for name, read := range map[string]func(string){
		"shorten": func(text string) { shorten(text, few) },
		"trim": func(text string) {
			if cut, ok := cutText(text, few); ok {
				RenderTrim(text, cut)
			}
		},
		"copies": func(text string) {
			f := copyFinder{found: map[string]place{}}
			f.add(1, text, []session.Range{{From: 0, To: len(text)}})
			f.copies(text)
		},
		"prompt": func(text string) {
			p := prompt{budget: len(text), output: 1000, count: quarter, previous: text, events: []event{{content: session.Content{Text: text, Calls: []session.Call{{Arguments: text}}}}}}
			_, _ = p.plan(DefaultEventLength, maxCalls)
		},
		"reply":    func(text string) { _, _ = prose{}.record(Reply{Text: text}) },
		"function": func(text string) { _, _ = structured{}.record(Reply{Arguments: `{"user_context":` + text}) },
		"record":   func(text string) { (&span{previous: record.Summary{Record: text}}).previousRecord() },
		"focus": func(text string) {
			w := weights{}
			w.add(session.User, session.Content{Text: text})
		},
	} {
		t.Run(name, func(t *testing.T) { lineartest.Check(t, read) })
	}
}
