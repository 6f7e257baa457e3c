package command

import (
	"strings"
	"testing"
)

// TestWhyOfASessionTellsWhatHappened checks that requests at which nothing happened are counted, and the others told, oldest first.
func TestWhyOfASessionTellsWhatHappened(t *testing.T) {
	var out strings.Builder
	explainSession(&out, []explainedRequest{
		{Request: "R4", Did: "below"},
		{Request: "R3", Did: "done", Due: "economics", Condensations: 1, Miss: "condensed"},
		{Request: "R2", Did: "below", Miss: "expired"},
		{Request: "R1", Did: "below", Miss: "first"},
	})
	text := out.String()
	second, third := strings.Index(text, "R2"), strings.Index(text, "R3")
	if second < 0 || third < second || strings.Contains(text, "R1") || strings.Contains(text, "R4") {
		t.Errorf("told:\n%s", text)
	}
	for _, want := range []string{"The history was condensed. It was due (economics).", "later than upstream keeps", "At 2 of the newest 4 requests"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not told:\n%s", want, text)
		}
	}
}
