package agents

import "strings"

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

// markers are how known agents begin (or phrase) their side requests. A side request that is not known here is still
// recognised as a fork; only its name is missing.
var markers = [...]marker{
	{request: Suggestion, start: "[SUGGESTION MODE"},
	{request: Compaction, system: "You are a context summarization agent"},
	{request: Compaction, system: "You are a context summarization assistant"},
	{request: Compaction, system: "You are a helpful AI assistant tasked with summarizing conversations"},
	{request: Compaction, system: "You are the component that summarizes internal chat history"},
	{request: Compaction, start: "Your task is to create a detailed summary of the conversation so far"},
	{request: Compaction, start: "You are performing a CONTEXT CHECKPOINT COMPACTION"},
	{request: Compaction, start: "Provide a detailed prompt for continuing our conversation above"},
	{request: Compaction, start: "First, reason in your scratchpad. Then, generate the <state_snapshot>"},
	{request: Compaction, start: "The messages above are a conversation to summarize"},
	{request: Title, system: "You are a title generator"},
	{request: Title, start: "Generate a title for this conversation"},
	{request: Title, start: "Generate a concise, single-line"},
	{request: Title, within: "reply with a title for the chat"},
	{request: Title, within: "Generate a concise, 3-5 word title"},
}

// markerReach bounds how much of a text is looked at, in bytes.
const markerReach = 600

// SideRequest tells from the beginning of a request's system prompt and of its last user message which side request it is;
// empty if it is none that is known.
func SideRequest(system, user string) string {
	system, user = head(system, markerReach), head(strings.TrimLeft(user, " \t\r\n"), markerReach)
	for _, m := range markers {
		if m.matches(system, user) {
			return m.request
		}
	}
	return ""
}

func head(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}
