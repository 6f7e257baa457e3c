package session

import "strings"

// Purpose says what a thread is for, as far as its content tells.
type Purpose string

// The purposes.
const (
	PurposeMain       Purpose = "main"
	PurposeTitle      Purpose = "title"      // names the conversation
	PurposeSuggestion Purpose = "suggestion" // guesses what the user types next
	PurposeCompaction Purpose = "compaction" // the agent's own summary of its history
)

// Branches reports whether a request of this purpose hangs a last message of its own on a history that goes on without
// it, so that it must not become part of that history's thread.
func (p Purpose) Branches() bool { return p == PurposeSuggestion || p == PurposeCompaction }

// marker is one way to recognise a side request. Only one of its texts is set.
type marker struct {
	purpose Purpose
	system  string // contained in the system prompt
	start   string // the beginning of the last user message
	within  string // contained in the last user message
}

func (m marker) matches(system, user string) bool {
	switch {
	case m.system != "":
		return strings.Contains(system, m.system)
	case m.start != "":
		return strings.HasPrefix(user, m.start)
	default:
		return strings.Contains(user, m.within)
	}
}

// markers are how known agents begin (or phrase) their side requests. A side request that is not known here still
// resolves rightly, as a fork; only its name is missing.
var markers = [...]marker{
	{purpose: PurposeSuggestion, start: "[SUGGESTION MODE"},
	{purpose: PurposeCompaction, system: "You are a context summarization agent"},
	{purpose: PurposeCompaction, system: "You are a context summarization assistant"},
	{purpose: PurposeCompaction, system: "You are a helpful AI assistant tasked with summarizing conversations"},
	{purpose: PurposeCompaction, system: "You are the component that summarizes internal chat history"},
	{purpose: PurposeCompaction, start: "Your task is to create a detailed summary of the conversation so far"},
	{purpose: PurposeCompaction, start: "You are performing a CONTEXT CHECKPOINT COMPACTION"},
	{purpose: PurposeCompaction, start: "Provide a detailed prompt for continuing our conversation above"},
	{purpose: PurposeCompaction, start: "First, reason in your scratchpad. Then, generate the <state_snapshot>"},
	{purpose: PurposeCompaction, start: "The messages above are a conversation to summarize"},
	{purpose: PurposeTitle, system: "You are a title generator"},
	{purpose: PurposeTitle, start: "Generate a title for this conversation"},
	{purpose: PurposeTitle, start: "Generate a concise, single-line"},
	{purpose: PurposeTitle, within: "reply with a title for the chat"},
	{purpose: PurposeTitle, within: "Generate a concise, 3-5 word title"},
}

// markerReach bounds how much of a text is looked at, in bytes.
const markerReach = 600

// PurposeOf reads the purpose of a request off the beginning of its system prompt and of its last user message.
func PurposeOf(system, user string) Purpose {
	system, user = head(system, markerReach), head(strings.TrimLeft(user, " \t\r\n"), markerReach)
	for _, m := range markers {
		if m.matches(system, user) {
			return m.purpose
		}
	}
	return PurposeMain
}

func head(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}
