package agents

import (
	"slices"
	"strings"
)

// The side requests of agents, as in session.Purpose.
const (
	Title      = "title"      // a title for the conversation
	Suggestion = "suggestion" // a guess at the user's next message
	Compaction = "compaction" // the agent's own summary of its history
)

// marker is one way to recognise a side request. Exactly one of system, start and within is set.
type marker struct {
	request string
	system  string // contained in the system prompt
	start   string // the beginning of the last message
	within  string // contained in the beginning or the end of that message
}

// markers are phrases in the side requests of known agents. An unknown side request is still recognised as a fork, but without a
// name.
var markers = [...]marker{
	{request: Suggestion, start: "[SUGGESTION MODE"},
	{request: Compaction, system: "You are a context summarization agent"},
	{request: Compaction, system: "You are a context summarization assistant"},
	{request: Compaction, system: "You are a helpful AI assistant tasked with summarizing conversations"},
	{request: Compaction, system: "You are the component that summarizes"},
	{request: Compaction, system: "distilling chat history into a structured XML <state_snapshot>"}, // Gemini CLI: it writes one and has it checked
	{request: Compaction, system: "You are maintaining a context-aware state summary for an interactive agent"},
	{request: Compaction, start: "You are the component that summarizes a conversation"},
	{request: Compaction, start: "Your task is to create a detailed summary of the conversation so far"},
	{request: Compaction, within: "\nYour task is to create a detailed summary of the conversation so far"},
	{request: Compaction, start: "You are performing a CONTEXT CHECKPOINT COMPACTION"},
	{request: Compaction, start: "Provide a detailed prompt for continuing our conversation above"},
	{request: Compaction, start: "First, reason in your scratchpad. Then, generate the <state_snapshot>"},
	{request: Compaction, start: "The messages above are a conversation to summarize"},
	{request: Compaction, start: "Please provide a concise summary of our conversation so far, capturing the key context"},
	{request: Compaction, start: "The conversation has grown too large for the context window and must be compacted now"},
	{request: Compaction, system: "assistant that summarizes text"},
	{request: Title, system: "You are a title generator"},
	{request: Title, start: "Generate a title for this conversation"},
	{request: Title, start: "Generate a concise, single-line"},
	{request: Title, within: "reply with a title for the chat"},
	{request: Title, within: "Generate a concise, 3-5 word title"},
}

// markerReach is how much of the beginning and of the end of a text is searched for markers, in bytes.
const markerReach = 600

// Request holds the parts of a request by which a side request is recognised.
type Request struct {
	System, User string // the system prompt, and the last message, which must be a user message
	Turn         string // the value of TurnHeader
	Alone        bool   // the last message is the whole history
	Calls        bool   // tools were called in the history
	Tools        bool   // tools are offered for the answer
}

// TurnHeader is the header in which Codex states the purpose of a request, as JSON. Its compaction prompt may be configured by the
// user.
const TurnHeader = "x-codex-turn-metadata"

// SideRequest returns the name of a known side request, or an empty string. Since phrases change between versions, an agent's
// compaction is also recognised by its form: it asks for a summary of the conversation, and offers no tools although the
// history has calls, or also has a system prompt that asks for a summary, or quotes the conversation in its only message.
func SideRequest(r Request) string {
	if strings.Contains(r.Turn, `"request_kind":"compaction"`) {
		return Compaction
	}
	user := strings.TrimLeft(r.User, " \t\r\n")
	system, user := head(r.System, markerReach), head(user, markerReach)+"\n"+user[max(len(user)-markerReach, 0):]
	for _, m := range markers {
		if strings.Contains(system, m.system) && strings.HasPrefix(user, m.start) && strings.Contains(user, m.within) {
			return m.request
		}
	}
	if endsWithClineTask(r.User) {
		return Compaction
	}
	systemAsks := asksForSummary(head(system, promptReach), summaryNouns[:])
	switch {
	case systemAsks && asksForSummary(user, summaryNouns[:]),
		!r.Tools && r.Calls && (startsWithOrder(system) || startsWithOrder(user)),
		!r.Tools && r.Alone && (systemAsks || asksForSummary(user, summaryQuotes[:])):
		return Compaction
	}
	return ""
}

// Compactor is a client that makes summaries of its own, whatever usage it is told.
type Compactor struct {
	Client string // its name; empty: the client is not known for that
	Off    string // how to switch that off
}

// CompactorOf returns the client that sends a request for a summary of its history.
func CompactorOf(r Request) Compactor {
	switch {
	case strings.Contains(head(r.System, markerReach), "You are maintaining a context-aware state summary for an interactive agent"):
		return Compactor{"OpenHands", "give its agent no condenser (condenser=None), or switch off memory condensation in its settings"}
	case strings.HasPrefix(strings.TrimLeft(r.User, " \t\r\n"), "<role>\nContext Extraction Assistant"):
		return Compactor{"LangChain", "leave out SummarizationMiddleware; in Deep Agents, exclude it (excluded_middleware of a HarnessProfile)"}
	}
	return Compactor{}
}

// endsWithClineTask reports whether a text ends with Cline's instruction to write a summary. It is long and may follow tool results.
func endsWithClineTask(text string) bool {
	const element = "<explicit_instructions type=\""
	text, closed := strings.CutSuffix(strings.TrimRight(text, " \t\r\n"), "</explicit_instructions>")
	_, task, opened := strings.Cut(text[max(strings.LastIndex(text, element), 0):], element)
	return closed && opened && (strings.HasPrefix(task, `summarize_task"`) || strings.HasPrefix(task, `condense"`))
}

// orderReach and promptReach are lengths in bytes: an order to summarise, or a system prompt for summaries, mentions the summary within this
// length from its beginning.
const (
	orderReach  = 160
	promptReach = 300
)

// The words of a request for a summary: what to do, with what, and the names of a quoted conversation.
var (
	summaryVerbs  = [...]string{"summar", "condens", "compact", "compress", "handoff", "hand-off", "snapshot", "extract"}
	summaryNouns  = [...]string{"conversation", "chat", "history", "session", "transcript", "messages", "so far", "the above"}
	summaryQuotes = [...]string{"conversation history", "chat history", "partial conversation", "conversation below", "messages below"}
)

func asksForSummary(text string, of []string) bool {
	return containsAny(text, summaryVerbs[:]) && containsAny(text, of)
}

// startsWithOrder reports whether a text begins by asking for a summary.
func startsWithOrder(text string) bool {
	return asksForSummary(head(text, orderReach), summaryNouns[:]) && !strings.HasPrefix(text, "<")
}

// containsAny reports whether a text contains any of the words, in any case.
func containsAny(text string, words []string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

func head(s string, n int) string { return s[:min(len(s), n)] }
