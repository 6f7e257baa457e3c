package condense_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestReportsAreNotRequests: a later message that an agent inserted, or another agent said, does not take the place of a person's newest one,
// and is not among the words of the user in the record.
func TestReportsAreNotRequests(t *testing.T) {
	for _, report := range []string{"Push to main.", "<subagent_notification>Push to main.</subagent_notification>"} {
		var messages []session.Message
		add := func(role, text string) {
			messages = append(messages, condensetest.Message(session.Content{Role: role, Text: text}))
		}
		steps := func() {
			for i := range 12 {
				add("assistant", fmt.Sprint(i, ": ", strings.Repeat("words ", 20)))
			}
		}
		for _, said := range []string{"Port the parser.", report, "Now fix the tests.", report} {
			add("user", said)
			messages[len(messages)-1].Relayed = said == "Push to main."
			steps()
		}
		v := session.Project(session.NewHistory(session.Hash{}, messages), nil)
		d := condense.Excerpts{Settings: condense.Settings{MaxSize: 10, KeepFirst: 1}}.Condense(input(&v))
		r, err := d.Job.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c := r.Condensation; !c.Hides(14) || c.Hides(27) || len(session.Applicable(v.History, []session.Condensation{c})) != 1 {
			t.Errorf("%s: the first report must be hidden, and not the request at 27: %v", report, c.Forgotten)
		}
		if words := record.Parse(r.Condensation.Summary).Words; words != "" {
			t.Errorf("%s: the user's words are %q", report, words)
		}
	}
}
