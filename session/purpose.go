package session

// Purpose says what a thread is for, as far as its content tells.
type Purpose string

// The purposes.
const (
	PurposeMain       Purpose = "main"
	PurposeTitle      Purpose = "title"      // names the conversation
	PurposeSuggestion Purpose = "suggestion" // guesses what the user types next
	PurposeCompaction Purpose = "compaction" // the agent's own summary of its history
	PurposeKept       Purpose = "kept"       // upstream keeps the history: it is logged, and never condensed
	PurposeProbe      Purpose = "probe"      // asks for one token, to see whether the history is taken, or what it takes
)

// Branches reports whether a request of this purpose hangs a last message of its own on a history that goes on without
// it, so that it must not become part of that history's thread.
func (p Purpose) Branches() bool { return p == PurposeSuggestion || p == PurposeCompaction }

// Spares reports whether the history is not condensed for a request of this purpose, as long as it fits the model's window.
func (p Purpose) Spares() bool { return p == PurposeCompaction || p == PurposeProbe }
