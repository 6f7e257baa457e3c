package condense_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestUnansweredStays: what follows the model's newest message stays. If a window that upstream has refused to exceed has no room for all of
// it, the newest stays.
func TestUnansweredStays(t *testing.T) {
	var messages []session.Message
	for i := range 40 {
		role := "user"
		if i < 20 && i%2 == 1 {
			role = "assistant"
		}
		messages = append(messages, condensetest.Message(session.Content{Role: role, Text: fmt.Sprint(i, ": ", strings.Repeat("words ", 20))}))
	}
	v := session.Project(session.NewHistory(session.Hash{}, messages), nil)
	settings := condense.Settings{MaxSize: 10, KeepFirst: 1}
	hidden := func(in condense.Input) (first, last int) {
		d := condense.AmortizedForgetting{Settings: settings}.Condense(in)
		if d.Job == nil {
			t.Fatalf("nothing is due: %+v", d)
		}
		r, err := d.Job.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all := r.Condensation.Forgotten
		return all[0].From, all[len(all)-1].To - 1
	}
	if _, last := hidden(input(&v)); last != 20 {
		t.Errorf("hidden up to %d, want 20, the newest answer", last)
	}
	in := input(&v)
	in.Window, in.Need = in.Total*2/5, condense.Need{Reason: session.ReasonOverflow, Hard: true}
	if _, last := hidden(in); last <= 20 || last >= 40 {
		t.Errorf("in a small window: hidden up to %d", last)
	}
}
