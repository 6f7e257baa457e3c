package agents

import "testing"

func TestSideRequest(t *testing.T) {
	f := func(system, user, want string) {
		t.Helper()
		if got := SideRequest(system, user); got != want {
			t.Errorf("%q, %q: got %q, want %q", system, user, got, want)
		}
	}
	f("You are a coding agent.", "Fix the bug.", "")
	f("", "", "")
	f("You are a title generator. You output ONLY a title.", "Generate a title for this conversation:\n", Title)
	f("", "Given the following... please reply with a title for the chat that is 3-4 words", Title)
	f("You are a coding agent.", "\n [SUGGESTION MODE: Suggest what the user might type]", Suggestion)
	f("You are a coding agent.", "Your task is to create a detailed summary of the conversation so far, ...", Compaction)
	f("You are a context summarization agent. You are given ...", "Here is the conversation so far", Compaction)
	f("You are a coding agent.", "Why does it say '[SUGGESTION MODE' here?", "")
}
