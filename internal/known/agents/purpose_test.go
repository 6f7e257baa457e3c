package agents

import (
	"strings"
	"testing"
)

func TestSideRequest(t *testing.T) {
	f := func(system, user, want string) {
		t.Helper()
		if got := SideRequest(Request{System: system, User: user, Tools: true}); got != want {
			t.Errorf("%q, %q: got %q, want %q", system, user, got, want)
		}
	}
	f("You are a coding agent.", "Fix the bug.", "")
	f("", "", "")
	f("You are a title generator. You output ONLY a title.", "Generate a title for this conversation:\n", Title)
	f("", "Given the following... please reply with a title for the chat that is 3-4 words", Title)
	f("You are a coding agent.", "\n [SUGGESTION MODE: Suggest what the user might type]", Suggestion)
	f("You are a coding agent.", "Your task is to create a detailed summary of the conversation so far, ...", Compaction)
	f("You are a coding agent.", "Call no tools.\n\nYour task is to create a detailed summary of the conversation so far, ...", Compaction)
	f("You are a context summarization agent. You are given ...", "Here is the conversation so far", Compaction)
	f("You are a coding agent.", "Why does it say '[SUGGESTION MODE' here?", "")
}

// TestCompactionsOfClients checks requests in which current clients ask for a summary of their history: the prompts with their position and
// length, and the other parts of the request.
func TestCompactionsOfClients(t *testing.T) {
	const agent = "You are an interactive agent. Use the tools that you have."
	transcript := "# USER\n" + strings.Repeat("Go on with the parser.\n# ASSISTANT\nI went on.\n", 200)
	for name, r := range map[string]Request{
		"qwen 0.15": {
			System: "You are the component that summarizes internal chat history into a given structure.\n\nWhen the conversation history grows too large, ...",
			User:   "First, reason in your scratchpad. Then, generate the <state_snapshot>.", Calls: true,
		},
		"gemini 0.61": {
			System: "You are a specialized system component responsible for distilling chat history into a structured XML <state_snapshot>.\n\n### CRITICAL ...",
			User:   "Generate a new <state_snapshot> based on the provided history.\n\nFirst, reason in your scratchpad. Then, generate the updated <state_snapshot>.", Calls: true,
		},
		"gemini 0.61, checked": {
			System: "You are a specialized system component responsible for distilling chat history into a structured XML <state_snapshot>.\n\n### CRITICAL ...",
			User:   "Critically evaluate the <state_snapshot> you just generated. Did you omit any specific technical details ...", Calls: true,
		},
		"qwen 0.24, in the turn": {
			System: agent, User: "You are the component that summarizes a conversation when its context window is about to overflow. The summary you produce ...", Calls: true, Tools: true,
		},
		"qwen 0.24": {
			System: "You are the component that summarizes a conversation when its context window is about to overflow. The summary you produce ...",
			User:   "First, reason in your <analysis> block. Then, produce the <state_snapshot> XML.", Calls: true,
		},
		"cline 3": {
			System: "Summarize the provided coding session into a concise continuation note with detailed next steps.",
			User:   "Summarize this session for continuation. Be concise and factual.\n\n## Goal\n...\n\nConversation:\n" + transcript, Alone: true,
		},
		"copilot": {
			System: "Your task is to create a comprehensive, detailed summary of the entire conversation that captures all essential information ...",
			User:   "Summarize the conversation history so far, paying special attention to the most recent agent commands and tool results ...", Calls: true, Tools: true,
		},
		"copilot, in the turn": {
			System: agent, User: "The conversation has grown too large for the context window and must be compacted now.\nWrite ...", Calls: true, Tools: true,
		},
		"cn 1.5":             {System: agent, User: "Please provide a concise summary of our conversation so far, capturing the key context, decisions made, and current state. ...", Calls: true},
		"cn 1.5, in a chat":  {System: agent, User: "Please provide a concise summary of our conversation so far, capturing the key context, decisions made, and current state. ..."},
		"cn 1.5, with tools": {System: agent, User: "Please provide a concise summary of our conversation so far, capturing the key context, decisions made, and current state. ...", Calls: true, Tools: true},
		"cline, behind a result": {
			System: agent, Tools: true, Calls: true,
			User: "[read_file for 'parser.go'] Result:\n" + transcript + `<explicit_instructions type="summarize_task">` + "\nThe current conversation is rapidly running out of context. " +
				strings.Repeat("Be thorough about what was asked for.\n", 170) + "</explicit_instructions>\n",
		},
		"cline, by hand": {
			System: agent, Tools: true, Calls: true,
			User: `<explicit_instructions type="condense">` + strings.Repeat("The user wants it shorter.\n", 100) + "</explicit_instructions>\n",
		},
		"crewai 1.15": {
			System: "You are a precise assistant that creates structured summaries of agent conversations. You preserve critical context needed for ...",
			User:   "Analyze the following conversation and create a structured summary that preserves all information ...\n\n<conversation>\n" + transcript + "</conversation>", Alone: true,
		},
		"LangChain's middleware 1.5": {
			User: "<role>\nContext Extraction Assistant\n</role>\n\n<primary_objective>\nYour sole objective in this task is to extract the highest quality/most relevant context " +
				"from the conversation history below.\n</primary_objective>\n" + transcript + "</messages>", Alone: true,
		},
		"codex, with a prompt of its user's": {
			System: agent, User: "Write down what the next one needs.", Calls: true, Tools: true, Turn: `{"session_id":"01a2","request_kind":"compaction","sandbox":"none"}`,
		},
		"aider 0.86": {System: "*Briefly* summarize this partial conversation about programming.\nInclude less detail about older parts ...", User: transcript, Alone: true},
	} {
		if got := SideRequest(r); got != Compaction {
			t.Errorf("%s: got %q", name, got)
		}
	}
	for name, r := range map[string]Request{
		"a file that quotes cline's": {
			System: agent, Tools: true, Calls: true,
			User: "Look at prompts.ts:\n" + `<explicit_instructions type="summarize_task">` + "\n" + transcript + "</explicit_instructions>\nWhat does it do?",
		},
		"codex at work": {
			System: agent, User: "Go on.", Calls: true, Tools: true,
			Turn: `{"request_kind":"turn","workspaces":{"/tmp/\"request_kind\":\"compaction\"":{}}}`,
		},
		"aider at work": {System: "Act as an expert programmer.", User: "Summarise what parser.go does in its comment.", Alone: true},
	} {
		if got := SideRequest(r); got != "" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestCompactionsByForm checks requests for a summary in the forms that agents use, but in other words.
func TestCompactionsByForm(t *testing.T) {
	const agent = "You are a coding agent. Use the tools."
	long := strings.Repeat("USER: go on\nASSISTANT: I went on.\n", 100)
	for name, r := range map[string]Request{
		"another system prompt, no tools":       {System: "You compress a chat into the form that you are given.", User: "Think first. Then write it.", Calls: true},
		"the same prompt, no tools":             {System: agent, User: "We run out of room. Summarise what was said so far, with all file names.", Calls: true},
		"another prompt, tools that are unused": {System: "Write a full summary of the whole conversation, so that another may go on.", User: "Summarise the conversation now; look at the newest results above all.", Calls: true, Tools: true},
		"an instruction behind results":         {System: agent, User: long + `<explicit_instructions type="summarize_task">Write it down.</explicit_instructions>`, Calls: true, Tools: true},
		"a transcript under a prompt":           {System: "*Shortly* summarise this part of a conversation.", User: long, Alone: true},
		"a transcript under an instruction":     {User: "<role>Extractor</role>\nTake what matters from the conversation history below: extract goals and files.\n" + long, Alone: true},
		"a text under a prompt":                 {System: "You are a helpful assistant that summarizes text.", User: "Summarise this:\n" + long, Alone: true},
	} {
		if got := SideRequest(r); got != Compaction {
			t.Errorf("%s: got %q", name, got)
		}
	}
	for name, r := range map[string]Request{
		"a person asks, tools are there": {System: agent, User: "Summarise our conversation so far.", Calls: true, Tools: true},
		"a person asks in a chat":        {System: "You are a helpful assistant.", User: "Please summarise our conversation so far."},
		"a last answer without tools":    {System: agent, User: "No calls are left. Answer now.", Calls: true},
		"a document":                     {System: "You are a helpful assistant.", User: "Summarise this article: " + long, Alone: true},
		"a summary in the code":          {System: agent, User: "Rename summary() to total().", Calls: true, Tools: true},
	} {
		if got := SideRequest(r); got != "" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
