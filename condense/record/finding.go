package record

import "strings"

// Finding is a section of a record that is worth remembering beyond the conversation: a decision, a fact, or a task still
// open. The state of the work in files, tests and branches is not one.
type Finding struct {
	Kind    string `json:"kind"`    // Decision, Fact or Task
	Section string `json:"section"` // name of the section as the record spells it; empty for text before the first section
	Text    string `json:"text"`
}

// The kinds of findings.
const (
	Decision = "decision"
	Fact     = "fact"
	Task     = "task"
)

// Findings returns the findings in the text of a summary that Summary.String wrote. A section with a name that we do not
// know, because it was translated or invented by the summariser, is a Fact.
func Findings(summary string) (found []Finding) {
	f := Finding{}
	end := func() {
		f.Kind = kindOf(f.Section)
		f.Text = strings.TrimSpace(f.Text)
		if f.Kind != "" && f.Text != "" {
			found = append(found, f)
		}
	}
	for line := range strings.Lines(Parse(summary).Record) {
		if name, text, ok := Heading(line); ok {
			end()
			f = Finding{Section: name, Text: text}
			continue
		}
		f.Text += line
	}
	end()
	return found
}

// Heading parses the first line of a section: "NAME: text", "**Name**: text" or "## Name".
func Heading(line string) (name, text string, ok bool) {
	if strings.HasPrefix(line, "#") {
		return strings.Trim(line, "# \t\r\n:*"), "", true
	}
	if rest, bold := strings.CutPrefix(line, "**"); bold {
		name, text, ok = strings.Cut(rest, "**")
		name, colonInside := strings.CutSuffix(name, ":")
		text, colonAfter := strings.CutPrefix(text, ":")
		return name, text, ok && (colonInside || colonAfter)
	}
	name, text, ok = strings.Cut(line, ":")
	return name, text, ok && len(name) > 2 && name == strings.ToUpper(name) && name != strings.ToLower(name)
}

// kindOf returns the kind of a section by its name, or "" if the section is not a finding.
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
