package session

import "testing"

func TestPurposeOf(t *testing.T) {
	f := func(system, user string, want Purpose) {
		t.Helper()
		if got := PurposeOf(system, user); got != want {
			t.Errorf("%q, %q: got %s, want %s", system, user, got, want)
		}
	}
	f("You are a coding agent.", "Fix the bug.", PurposeMain)
	f("", "", PurposeMain)
	f("You are a title generator. You output ONLY a title.", "Generate a title for this conversation:\n", PurposeTitle)
	f("", "Given the following... please reply with a title for the chat that is 3-4 words", PurposeTitle)
	f("You are a coding agent.", "\n [SUGGESTION MODE: Suggest what the user might type]", PurposeSuggestion)
	f("You are a coding agent.", "Your task is to create a detailed summary of the conversation so far, ...", PurposeCompaction)
	f("You are a context summarization agent. You are given ...", "Here is the conversation so far", PurposeCompaction)
	f("You are a coding agent.", "Why does it say '[SUGGESTION MODE' here?", PurposeMain)
	if PurposeTitle.Branches() || PurposeMain.Branches() || !PurposeCompaction.Branches() || !PurposeSuggestion.Branches() {
		t.Error("what branches is wrong")
	}
}
