package record

import "strings"

// Finding is a section of a record that is worth to be remembered after the conversation: not where the work stands in files, tests and
// branches, but what was decided, what is known, and what is still to be done.
type Finding struct {
	Kind    string `json:"kind"`    // Decision, Fact or Task
	Section string `json:"section"` // as the record names it; empty: what stands before all sections
	Text    string `json:"text"`
}

// The kinds of findings.
const (
	Decision = "decision"
	Fact     = "fact"
	Task     = "task"
)

// Findings reads the text of a summary that String wrote. A section whose name is not ours, since it was translated or is the
// summariser's own, is a Fact.
func Findings(summary string) (found []Finding) {
	f := Finding{}
	end := func() {
		f.Text = strings.TrimSpace(f.Text)
		if f.Kind = kindOf(f.Section); f.Kind != "" && f.Text != "" {
			found = append(found, f)
		}
	}
	for line := range strings.Lines(Parse(summary).Record) {
		if name, text, is := heading(line); is {
			end()
			f = Finding{Section: name, Text: text}
			continue
		}
		f.Text += line
	}
	end()
	return found
}

// heading reads the beginning of a section: "NAME: text", "**Name**: text" or "## Name".
func heading(line string) (name, text string, is bool) {
	if strings.HasPrefix(line, "#") {
		return strings.Trim(line, "# \t\r\n:*"), "", true
	}
	if rest, bold := strings.CutPrefix(line, "**"); bold {
		name, text, is = strings.Cut(rest, "**")
		before := strings.HasSuffix(name, ":")
		text, after := strings.CutPrefix(text, ":")
		return strings.TrimSuffix(name, ":"), text, is && (before || after)
	}
	name, text, is = strings.Cut(line, ":")
	return name, text, is && len(name) > 2 && name == strings.ToUpper(name) && name != strings.ToLower(name)
}

// kindOf tells what a section is by its name; empty: what is in it is not told.
func kindOf(section string) string {
	switch strings.ReplaceAll(strings.ToUpper(section), " ", "_") {
	case "DECISIONS":
		return Decision
	case "TASK_TRACKING", "PENDING", "PENDING_TASKS", "OPEN", "QUESTIONS", "NEXT_STEP":
		return Task
	case "COMPLETED", "CODE_STATE", "TESTS", "CHANGES", "DEPS", "VERSION_CONTROL_STATUS", "DELIVERABLE", "COMPLETED_TASKS", "FILES_MODIFIED",
		"FUNCTION_CHANGES", "DATA_STRUCTURES", "DEPENDENCIES", "TESTS_WRITTEN", "TESTS_PASSING", "FAILING_TESTS", "BRANCH_CREATED",
		"BRANCH_NAME", "COMMITS_MADE", "PR_CREATED", "PR_STATUS":
		return ""
	}
	return Fact
}
