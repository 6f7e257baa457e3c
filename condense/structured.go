package condense

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

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
	name, title, description string
}

// stateSection is the fields under one heading.
type stateSection struct {
	title  string
	fields []stateField
}

// stateSections are the headings of a state summary, in order.
func stateSections() []stateSection {
	return []stateSection{
		{"Core Information", []stateField{
			{"user_context", "User Context", "The user's goals, requirements, prohibitions and clarifications, word for word"},
			{"completed_tasks", "Completed Tasks", "Tasks completed so far, with exact ids and outcomes"},
			{"pending_tasks", "Pending Tasks", "Tasks left to do, the next step first, with exact ids and statuses"},
			{"current_state", "Current State", "Where the work stands: open questions, variables, values in use; for a conversation, " +
				"what was discussed, decided and is still open; for research, findings with their sources"},
		}},
		{"Code Changes", []stateField{
			{"files_modified", "Files Modified", "Files created or changed, by exact path"},
			{"function_changes", "Function Changes", "Functions created or changed, with signatures"},
			{"data_structures", "Data Structures", "Key data structures in use or changed"},
			{"dependencies", "Dependencies", "Dependencies, imports and external calls, with versions"},
		}},
		{"Testing Status", []stateField{
			{"tests_written", "Tests Written", "Tests written, by name and file"},
			{"tests_passing", "Tests Passing", "Tests that pass"},
			{"failing_tests", "Failing Tests", "Tests that fail, by name"},
			{"error_messages", "Error Messages", "Exact error messages, and what was tried in vain"},
		}},
		{"Version Control", []stateField{
			{"branch_created", "Branch Created", "Whether a branch was created for the work"},
			{"branch_name", "Branch Name", "Name of the branch"},
			{"commits_made", "Commits Made", "Commits, with hashes"},
			{"pr_created", "PR Created", "Whether a pull request was created"},
			{"pr_status", "PR Status", "State of the pull request, with its number or URL"},
		}},
		{"Additional Context", []stateField{
			{"other_relevant_context", "Other Relevant Context", "Whatever else is needed to go on: decisions and why they were made, paths, URLs, ids, dead ends"},
		}},
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
	for _, s := range stateSections() {
		for _, f := range s.fields {
			properties[f.name] = map[string]string{"type": "string", "description": f.description}
		}
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
	fields, err := stateFields(r.Arguments)
	if err != nil {
		return "", &SummaryError{Kind: FaultMalformed}
	}
	record := renderState(fields)
	if record == "" {
		return "", &SummaryError{Kind: FaultEmpty}
	}
	return record, nil
}

// stateFields reads an object's members as text.
func stateFields(arguments string) (map[string]string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &members); err != nil {
		return nil, fmt.Errorf("read state summary: %w", err)
	}
	if members == nil {
		return nil, errors.New("read state summary: no object")
	}
	fields := make(map[string]string, len(members))
	for name, raw := range members {
		fields[name] = stateText(raw)
	}
	return fields, nil
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
func renderState(fields map[string]string) string {
	var b strings.Builder
	for _, s := range stateSections() {
		heading := "\n## " + s.title + "\n"
		for _, f := range s.fields {
			text := fields[f.name]
			if text == "" {
				continue
			}
			b.WriteString(heading)
			heading = ""
			if strings.Contains(text, "\n") {
				text = "\n" + text
			}
			fmt.Fprintf(&b, "**%s**: %s\n", f.title, text)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return strings.TrimSpace("# State Summary\n" + b.String())
}
