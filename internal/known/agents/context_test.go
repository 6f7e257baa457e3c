package agents

import (
	"strings"
	"testing"
)

// TestReminderIsNotPartOfTheUsersMessage: Aider repeats the end of its system prompt after the newest message, for one request only.
func TestReminderIsNotPartOfTheUsersMessage(t *testing.T) {
	reminder := "To suggest changes to a file you MUST return the entire content.\n" + strings.Repeat("NEVER skip content. ", 8) + "\n\n"
	f := func(system, user, want string, reminded bool) {
		t.Helper()
		if got, ok := WithoutReminder(system, user); ok != reminded || ok && got != want {
			t.Errorf("%.40q: got %q, %v", user, got, ok)
		}
	}
	f("You are an expert.\n"+reminder, "Count the lines\n\n"+reminder, "Count the lines", true)
	f("You are an expert.\n\n"+reminder, "Count the lines.\n\n"+reminder, "Count the lines.", true)            // both end with a full stop
	f("Output each file.\n\n"+reminder, "Then change each file.\n\n"+reminder, "Then change each file.", true) // and with the same words
	f("You are an expert.\n\n"+reminder, "Count the lines.", "", false)
	f("You are an expert. "+strings.Repeat("x", 200), "Count "+strings.Repeat("x", 200), "", false) // in the middle of a line
	f("You are an expert.\n\n"+reminder, reminder, "", false)
}
