package agents

import (
	"slices"
	"strings"
)

// The side requests of agents, as session.Purpose names them.
const (
	Title      = "title"      // names the conversation
	Suggestion = "suggestion" // guesses what the user types next
	Compaction = "compaction" // the agent's own summary of its history
)

// marker is one way to recognise a side request. Only one of its texts is set.
type marker struct {
	request string
	system  string // contained in the system prompt
	start   string // the beginning of the last user message
	within  string // contained in the beginning or the end of the last user message
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

// markers are how known agents begin (or phrase) their side requests. A side request that is not known here is still
// recognised as a fork; only its name is missing.
var markers = [...]marker{
	{request: Suggestion, start: "[SUGGESTION MODE"},
	{request: Compaction, system: "You are a context summarization agent"},
	{request: Compaction, system: "You are a context summarization assistant"},
	{request: Compaction, system: "You are a helpful AI assistant tasked with summarizing conversations"},
	{request: Compaction, system: "You are the component that summarizes internal chat history"},
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

// markerReach bounds how much is looked at of a text's beginning, and of its end, in bytes.
const markerReach = 600

// Request is what tells a side request from others.
type Request struct {
	System, User string // the system prompt and the last message, which is a user's
	Turn         string // what Codex says of it, in TurnHeader
	Alone        bool   // the history is that message
	Calls        bool   // tools were called in the history
	Tools        bool   // tools are offered for the answer
}

// TurnHeader has Codex say, in JSON, what a request is for. Its prompt for compactions may be its user's own.
const TurnHeader = "x-codex-turn-metadata"

// SideRequest tells which side request it is; empty if it is none that is known. Phrases age, so an agent's own compaction is known by
// its form, too: it asks for a summary of the conversation, and no tool is offered although the history calls some, or the system
// prompt asks for it as well, or the conversation is quoted in the only message.
func SideRequest(r Request) string {
	if strings.Contains(r.Turn, `"request_kind":"compaction"`) {
		return Compaction
	}
	user := strings.TrimLeft(r.User, " \t\r\n")
	system, user := head(r.System, markerReach), head(user, markerReach)+"\n"+tail(user, markerReach)
	for _, m := range markers {
		if m.matches(system, user) {
			return m.request
		}
	}
	if instructed(r.User) {
		return Compaction
	}
	told, asked := summarises(head(system, promptReach)), summarises(user)
	switch {
	case told && asked,
		!r.Tools && r.Calls && (orders(system) || orders(user)),
		!r.Tools && r.Alone && (told || quotes(user)):
		return Compaction
	}
	return ""
}

// instructed reports whether a text ends with an instruction of Cline's to write a summary, which is long and may stand behind results.
func instructed(text string) bool {
	const element = "<explicit_instructions type=\""
	text, ends := strings.CutSuffix(strings.TrimRight(text, " \t\r\n"), "</explicit_instructions>")
	_, last, begins := strings.Cut(text[max(strings.LastIndex(text, element), 0):], element)
	return ends && begins && (strings.HasPrefix(last, `summarize_task"`) || strings.HasPrefix(last, `condense"`))
}

// orderReach is how soon an order to summarise says so.
const orderReach = 160

// promptReach is how soon a system prompt for summaries says so.
const promptReach = 300

// What a request for a summary speaks of: what to do, with what, and how it is named where the conversation itself is quoted.
var (
	summaryVerbs  = [...]string{"summar", "condens", "compact", "compress", "handoff", "hand-off", "snapshot", "extract"}
	summaryNouns  = [...]string{"conversation", "chat", "history", "session", "transcript", "messages", "so far", "the above"}
	summaryQuotes = [...]string{"conversation history", "chat history", "partial conversation", "conversation below", "messages below"}
)

func summarises(text string) bool {
	return speaks(text, summaryVerbs[:]) && speaks(text, summaryNouns[:])
}

// orders reports whether a text begins by asking for a summary.
func orders(text string) bool {
	return summarises(head(text, orderReach)) && !strings.HasPrefix(text, "<")
}

func quotes(text string) bool { return speaks(text, summaryVerbs[:]) && speaks(text, summaryQuotes[:]) }

func speaks(text string, of []string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(of, func(word string) bool { return strings.Contains(text, word) })
}

func head(s string, n int) string { return s[:min(len(s), n)] }

func tail(s string, n int) string { return s[max(len(s)-n, 0):] }
