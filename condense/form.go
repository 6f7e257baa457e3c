package condense

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// form is how a summariser is to write a record, and how its reply is read.
type form interface {
	// system is the prompt's unchanging part.
	system(f Focus) string
	// ask is the prompt's last sentence.
	ask(words int) string
	// shape adds to a request what the form takes.
	shape(r *Request)
	// record takes the record from a reply. What is wrong with one is a *SummaryError.
	record(r Reply) (string, error)
}

// prose is a record in plain text, with sections.
type prose struct{}

func (prose) system(f Focus) string {
	return instructionsOpen + recordIn(f)
}

// behind is what a model is told behind the conversation itself.
func (prose) behind(f Focus) string { return rideOpen + recordIn(f) }

func recordIn(f Focus) string {
	return " Use these sections, in this order, and leave out\nthose that would be empty:\n\n" + f.sections() + "\n" +
		instructionsExact + "; keep the section names as they are.\nOutput only the record: no preamble, no code fence, no comment."
}

func (prose) ask(words int) string {
	return fmt.Sprintf("Write the record now, in at most %d words. Output only the record.", words)
}

func (prose) shape(*Request) {}

func (prose) record(r Reply) (string, error) {
	text, err := ReadReply(r)
	if err == nil && !sectioned(text) {
		return "", &SummaryError{Kind: FaultMalformed, Detail: "none of the sections"}
	}
	return text, err
}

// sectioned reports whether a text has a section at least. Its name may have been translated or made a heading: what counts is a
// line that begins with a word in capitals and a colon, a markdown heading or bold text.
func sectioned(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(line, " \t-0123456789.")
		name, _, colon := strings.Cut(line, ":")
		capitals := colon && len(name) > 2 && name == strings.ToUpper(name) && name != strings.ToLower(name)
		if capitals || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "**") {
			return true
		}
	}
	return false
}

// NewStructured gives a rolling condenser whose summariser is made to call a function, create_state_summary, with the
// fields of OpenHands' StateSummary. The record is rendered as markdown; fields that are empty are left out. A call that
// cannot be read is a bad summary: nothing is forgotten for it.
func NewStructured(s LLMSettings) *LLM {
	l := newLLM("structured_summary", s, (*llmJob).write)
	l.form = structured{}
	return l
}

// stateFunction is the function's name.
const stateFunction = "create_state_summary"

// stateField is one field of a state summary.
type stateField struct {
	heading                  string // above it and those that follow; empty: that of the one before
	name, title, description string
}

// stateFields are those of a state summary, in order.
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

func (structured) ask(words int) string {
	return fmt.Sprintf("Call %s now, with at most %d words in all.", stateFunction, words)
}

func (structured) shape(r *Request) {
	properties := map[string]any{}
	for _, f := range stateFields() {
		properties[f.name] = map[string]string{"type": "string", "description": f.description}
	}
	schema, err := json.Marshal(map[string]any{
		"type": "object", "properties": properties,
		"required": []string{"user_context", "completed_tasks", "pending_tasks", "current_state"},
	})
	if err != nil {
		panic(err) // strings can always be written
	}
	r.Function = &Schema{
		Name:        stateFunction,
		Description: "Records the state of the work for the agent to go on from.",
		JSON:        schema,
	}
}

// record renders the function's arguments. A model that writes them as its text has done as asked, too.
func (structured) record(r Reply) (string, error) {
	if r.Arguments == "" || r.Refusal != "" || truncated(r) {
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

// stateText is the text of a value, whatever the model made of the type: lists become lines, yes and no stand for
// booleans.
func stateText(raw json.RawMessage) string {
	var text string
	var flag bool
	var list []json.RawMessage
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

// renderState writes the fields that are not empty under their headings; empty if all are.
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
