package condense

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
)

// form is the format of a record: how a summariser is asked for it, and how its reply is read.
type form interface {
	// system returns the fixed part of the prompt.
	system(f Focus) string
	// closing returns the last sentences of the fixed part behind instructions of the operator's own.
	closing() string
	// ask returns the last sentence of the prompt.
	ask(words int) string
	// shape adds to a request what the format requires.
	shape(r *Request)
	// record reads the record from a reply. It returns a *SummaryError if the record cannot be used.
	record(r Reply) (string, error)
}

// prose is a record as plain text with sections.
type prose struct{}

func (prose) system(f Focus) string { return proseSystem(instructionsOpen, f) }

// proseSystem returns the instructions for a record in prose.
func proseSystem(opening string, f Focus) string {
	return opening + " Use these sections, in this order, and leave out\nthose that would be empty:\n\n" + f.sections() + "\n" +
		instructionsExact + "; keep the section names as they are.\nOutput only the record: no preamble, no code fence, no comment."
}

func (prose) closing() string {
	return "\nBegin each section with its name in capitals and a colon. Output only the record: no preamble, no code fence, no comment."
}

func (prose) ask(words int) string {
	return fmt.Sprintf("Write the record now, in at most %d words. Output only the record.", words)
}

func (prose) shape(*Request) {}

func (prose) record(r Reply) (string, error) {
	text, err := ReadReply(r)
	if err == nil && !hasSection(text) {
		return "", FaultMalformed.errorf("the reply has no sections")
	}
	return text, err
}

// hasSection reports whether a text has at least one section. Since a section name may have been translated or made a
// heading, any line counts that begins with a word in capitals and a colon, a markdown heading or bold text.
func hasSection(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(line, " \t-0123456789.")
		if _, _, named := record.Heading(line); named || strings.HasPrefix(line, "**") {
			return true
		}
	}
	return false
}

// NewStructured returns a rolling condenser whose summariser must call a function, create_state_summary, with the fields of
// OpenHands' StateSummary. The record is rendered as markdown without the empty fields. A call that cannot be read is a bad
// summary, and nothing is hidden.
func NewStructured(s LLMSettings) *LLM {
	return &LLM{typeName: "structured_summary", s: s.withDefaults(), form: structured{}, ask: (*llmJob).write}
}

const stateFunction = "create_state_summary"

// stateField is one field of a state summary.
type stateField struct {
	heading                  string // above this field and those that follow; empty: as for the field before
	name, title, description string
}

func stateFields() []stateField {
	return []stateField{
		{"Core Information", "user_context", "User Context", "The user's goals, requirements, prohibitions and clarifications, word for word"},
		{"", "completed_tasks", "Completed Tasks", "Tasks completed so far, with exact ids and outcomes"},
		{"", "pending_tasks", "Pending Tasks", "Tasks left to do, the next step first, with exact ids and statuses"},
		{"", "current_state", "Current State", "Where the work stands: open questions, variables, values in use; for a conversation, " +
			"what was discussed, decided and is still open; for research, findings with their sources"},
		{"Code Changes", "files_modified", "Files Modified", "Files created or changed, by exact path"},
		{"", "function_changes", "Function Changes", "Functions created or changed, with signatures"},
		{"", "data_structures", "Data Structures", "Key data structures in use or changed"},
		{"", "dependencies", "Dependencies", "Dependencies, imports and external calls, with versions"},
		{"Testing Status", "tests_written", "Tests Written", "Tests written, by name and file"},
		{"", "tests_passing", "Tests Passing", "Tests that pass"},
		{"", "failing_tests", "Failing Tests", "Tests that fail, by name"},
		{"", "error_messages", "Error Messages", "Exact error messages, and what was tried in vain"},
		{"Version Control", "branch_created", "Branch Created", "Whether a branch was created for the work"},
		{"", "branch_name", "Branch Name", "Name of the branch"},
		{"", "commits_made", "Commits Made", "Commits, with hashes"},
		{"", "pr_created", "PR Created", "Whether a pull request was created"},
		{"", "pr_status", "PR Status", "State of the pull request, with its number or URL"},
		{"Additional Context", "other_relevant_context", "Other Relevant Context", "Whatever else is needed to go on: decisions and why they were " +
			"made, paths, URLs, ids, dead ends"},
	}
}

// structured is a record as the arguments of a forced function call.
type structured struct{}

func (structured) system(f Focus) string {
	return instructionsOpen + " These are what it has to hold, in the fields\nof the function " + stateFunction +
		" that fit them best; leave the others empty:\n\n" + f.sections() + "\n" +
		instructionsExact + ".\nAnswer by calling " + stateFunction + " once, and by nothing else."
}

func (structured) closing() string {
	return "\nAnswer by calling " + stateFunction + " once, and by nothing else."
}

func (structured) ask(words int) string {
	return fmt.Sprintf("Call %s now, with at most %d words in all.", stateFunction, words)
}

func (structured) shape(r *Request) {
	properties := map[string]any{}
	for _, f := range stateFields() {
		properties[f.name] = map[string]string{"type": "string", "description": f.description}
	}
	schema, _ := json.Marshal(map[string]any{ // cannot fail: the values are strings
		"type": "object", "properties": properties,
		"required": []string{"user_context", "completed_tasks", "pending_tasks", "current_state"},
	})
	r.Function = &Schema{
		Name:        stateFunction,
		Description: "Records the state of the work for the agent to go on from.",
		JSON:        schema,
	}
}

// record renders the function's arguments. It also accepts a model that writes them as its text.
func (structured) record(r Reply) (string, error) {
	if r.Arguments == "" || r.Refusal != "" || r.Finish == "length" {
		text, err := ReadReply(r)
		if err != nil {
			return "", err
		}
		r.Arguments = text
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(r.Arguments), &fields); err != nil || fields == nil {
		return "", &SummaryError{Kind: FaultMalformed}
	}
	record := renderState(fields)
	if record == "" {
		return "", &SummaryError{Kind: FaultEmpty}
	}
	return record, nil
}

// stateText returns the text of a value of any type: lists become lines, booleans yes and no.
func stateText(raw json.RawMessage) string {
	var (
		text string
		flag bool
		list []json.RawMessage
	)
	switch {
	case json.Unmarshal(raw, &text) == nil: // null too
	case json.Unmarshal(raw, &flag) == nil:
		text = "no"
		if flag {
			text = "yes"
		}
	case json.Unmarshal(raw, &list) == nil:
		var lines []string
		for _, v := range list {
			if line := stateText(v); line != "" {
				lines = append(lines, "- "+line)
			}
		}
		text = strings.Join(lines, "\n")
	default:
		var compact bytes.Buffer
		if json.Compact(&compact, raw) == nil && compact.String() != "{}" {
			text = compact.String()
		}
	}
	return strings.TrimSpace(text)
}

// renderState renders the non-empty fields under their headings. It returns "" if all are empty.
func renderState(fields map[string]json.RawMessage) string {
	var b strings.Builder
	heading := ""
	for _, f := range stateFields() {
		if f.heading != "" {
			heading = "\n## " + f.heading + "\n"
		}
		text := stateText(fields[f.name])
		if text == "" {
			continue
		}
		if strings.Contains(text, "\n") {
			text = "\n" + text
		}
		fmt.Fprintf(&b, "%s**%s**: %s\n", heading, f.title, text)
		heading = ""
	}
	if b.Len() == 0 {
		return ""
	}
	return strings.TrimSpace("# State Summary\n" + b.String())
}
