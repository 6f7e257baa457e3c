package condense_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// night is the run that docs/what-is-kept.md shows.
func night() (messages []session.Message) {
	say := func(role, text string) {
		messages = append(messages, condensetest.Message(session.Content{Role: role, Text: text}))
	}
	step := func(text, tool, argument, result string) {
		id := fmt.Sprintf("call_%d", len(messages))
		messages = append(messages, condensetest.Message(session.Content{Role: "assistant", Text: text, Calls: []session.Call{{ID: id, Name: tool, Arguments: argument}}}),
			condensetest.Message(session.Content{Role: "tool", Result: id, Text: result}))
	}
	lines := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+"\n", i)
		}
		return b.String()
	}
	say("system", "You are a coding agent.")
	say("user", "The nightly import has been failing since Tuesday. Find out why and fix it. The ticket is INV-4821.")
	step("I'll look at the log.", "run", `{"command":"tail -90 logs/nightly.log"}`, lines(80, "INFO  imported batch %d, nothing unusual")+
		"ERROR movement 9f3c1017 applied twice (ErrDuplicateMovement)\nWARN  warehouse 4711: stock = -3\n"+lines(10, "INFO  waiting %d s"))
	step("The error comes from the retry.", "read", `{"path":"jobs/retry.go"}`, "package jobs\n\nconst maxRetries = 5\n\n// retryMovement tries a movement again.\n"+
		"func retryMovement(ctx context.Context, id string) error {\n"+lines(60, "\t// step %d of the retry, as in the handbook")+"}\n")
	say("user", "Do not touch api/v2, and never run the migrations on production. Tabs, not spaces.")
	step("retryMovement does not check whether the id was applied: I'll add a check.", "edit", `{"path":"jobs/retry.go","new":"if store.Applied(ctx, id) { return nil }"}`, "edited jobs/retry.go")
	step("Do the tests pass?", "run", `{"command":"go test ./jobs/..."}`, lines(50, "--- PASS: TestBatch/%d")+
		"--- FAIL: TestNightly/negative_stock (0.12s)\n    nightly_test.go:88: want \"stock is never negative\"\n")
	step("One test still fails. I'll look at it.", "read", `{"path":"jobs/nightly_test.go"}`, lines(70, "\t// case %d of the nightly test")+"func TestNightly(t *testing.T) {\n")
	say("user", "Go on.")
	step("The test wants the old order. I'll read the history of the file.", "run", `{"command":"git log --oneline -3 jobs/nightly_test.go"}`, "4f1a2c0 jobs: movements in order\n")
	return messages
}

// TestWhatIsKept checks that the page shows verbatim what excerpts make of its run.
func TestWhatIsKept(t *testing.T) {
	page, err := os.ReadFile("../docs/what-is-kept.md")
	if err != nil {
		t.Fatal(err)
	}
	h := session.NewHistory(session.Hash{}, night())
	v := session.Project(h, nil)
	r, err := condense.Excerpts{Settings: condense.Settings{MaxTokens: 1400, KeepFirst: 1}}.Condense(input(&v)).Job.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	c := r.Condensation
	after := session.Project(h, []session.Condensation{c})
	s := record.Parse(c.Summary)
	sizes := fmt.Sprintf("%d messages, %d tokens, became %d messages, %d tokens", len(v.Items), c.Before.Tokens, len(after.Items), c.After.Tokens)
	for _, want := range []string{sizes, s.Words, s.Excerpts} {
		if want == "" || !strings.Contains(string(page), want) {
			t.Errorf("the page does not show\n%s", want)
		}
	}
	if t.Failed() {
		for i, item := range after.Items {
			t.Logf("%d %s %.80s", i, item.Kind, item.Raw)
		}
	}
}
