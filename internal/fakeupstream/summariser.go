package fakeupstream

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// extractShare is how much of the prompt an extract may be: one of so many characters.
	extractShare = 8
	// extractLimit and extractFloor bound it, in characters. Half of the floor has room for a line.
	extractLimit = 2000
	extractFloor = 300
	// lineLimit bounds one line of it.
	lineLimit = 120
)

// Extract is the built-in stand-in for a summarising model: no model, no chance. Its summary is the first line of each
// section (sections are parted by empty lines) of the prompt, bounded to an eighth of the prompt; when they are too many,
// the first and the last ones. Made to call a function, or to answer by a JSON schema, it fills the schema: texts with
// the summary, lists of integers with the numbers of the events that the prompt names, newest first.
func Extract(req *Request) Answer {
	text := kept.ReplaceAllString(req.Text(), "")
	if name, schema := forcedFunction(asObject(req.Body)); name != "" {
		filled := fill(schema, text)
		return Answer{ToolCalls: []ToolCall{{ID: "call_summary", Name: name, Arguments: string(filled)}}}
	}
	format := asObject(asObject(req.Body)["response_format"])
	for _, schema := range []json.RawMessage{
		asObject(format["json_schema"])["schema"], asObject(asObject(asObject(req.Body)["text"])["format"])["schema"],
	} {
		if given(schema) {
			return Answer{Content: string(fill(schema, text))}
		}
	}
	return Answer{Content: "CURRENT_STATE: " + extract(text)}
}

// kept is what a summariser is shown for understanding only.
var kept = regexp.MustCompile(`(?s)<dewpoint_kept.*?</dewpoint_kept>`)

// forcedFunction returns the function that tool_choice demands and its parameters; "" when none is demanded.
func forcedFunction(top object) (name string, parameters json.RawMessage) {
	tools := asArray(top["tools"])
	wanted := asString(asObject(asObject(top["tool_choice"])["function"])["name"])
	anthropics := asString(asObject(top["tool_choice"])["name"])
	for _, tool := range tools {
		if t := asObject(tool); anthropics != "" && asString(t["name"]) == anthropics {
			if kindOf(t["parameters"]) == kindObject { // the Responses API
				return anthropics, t["parameters"]
			}
			return anthropics, t["input_schema"]
		}
		f := asObject(asObject(tool)["function"])
		if name := asString(f["name"]); name == wanted || asString(top["tool_choice"]) == "required" {
			return name, f["parameters"]
		}
	}
	return "", nil
}

func extract(text string) string { return strings.Join(extractLines(text), "\n") }

// extractLines returns the first lines of the sections: when they are too many, half of the bound from the front and half
// from the back.
func extractLines(text string) []string {
	half := max(extractFloor, min(extractLimit, utf8.RuneCountInString(text)/extractShare)) / 2
	lines := firstLines(text)
	head := within(lines, half)
	rest := slices.Clone(lines[len(head):])
	slices.Reverse(rest)
	tail := within(rest, half)
	slices.Reverse(tail)
	return slices.Concat(head, tail)
}

// within returns as many of the first lines as fit.
func within(lines []string, bound int) []string {
	for i, line := range lines {
		if bound -= utf8.RuneCountInString(line) + 1; bound < 0 {
			return lines[:i]
		}
	}
	return lines
}

func firstLines(text string) []string {
	var lines []string
	fresh := true
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if fresh && line != "" {
			lines = append(lines, cut(line, lineLimit))
		}
		fresh = line == ""
	}
	return lines
}

func cut(line string, runes int) string {
	if utf8.RuneCountInString(line) <= runes {
		return line
	}
	return string([]rune(line)[:runes-1]) + "…"
}

// fill makes the smallest value that fits the schema and says something about the text.
func fill(schema json.RawMessage, text string) json.RawMessage {
	s := asObject(schema)
	if options := asArray(s["enum"]); len(options) > 0 {
		return options[0]
	}
	switch schemaType(s) {
	case "object":
		return fillObject(s, text)
	case "array":
		return fillArray(s["items"], text)
	case "integer", "number":
		return json.RawMessage("0")
	case "boolean":
		return json.RawMessage("false")
	default:
		return mustJSON(extract(text))
	}
}

// schemaType returns the type of a schema, the first of several.
func schemaType(s object) string {
	if kindOf(s["type"]) == kindArray {
		return asString(asArray(s["type"])[0])
	}
	return asString(s["type"])
}

// fillObject gives every property a share of the text, so that all of them together stay within the bound of one.
func fillObject(s object, text string) json.RawMessage {
	properties := membersOf(s["properties"])
	filled := make([]member, len(properties))
	for i, p := range properties {
		part := text
		if schemaType(asObject(p.value)) == "string" {
			part = share(text, i, len(properties))
		}
		filled[i] = member{p.key, fill(p.value, part)}
	}
	return joinObject(filled)
}

// share returns the i-th of n parts of the text, about equal, cut between lines; the first is never empty.
func share(text string, i, n int) string {
	lines := slices.Collect(strings.Lines(text))
	cut := func(i int) int { return (len(lines)*i + n - 1) / n }
	return strings.Join(lines[cut(i):cut(i+1)], "")
}

func fillArray(items json.RawMessage, text string) json.RawMessage {
	switch schemaType(asObject(items)) {
	case "integer", "number":
		return mustJSON(eventNumbers(text))
	case "string":
		return mustJSON(extractLines(text))
	default:
		return json.RawMessage("[]")
	}
}

// eventNumbers returns the numbers that the prompt gives its events, such as id="12", ID: 12 or event 12, newest first.
func eventNumbers(text string) []int {
	naming := regexp.MustCompile(`(?i)\b(?:id|event)\b["']?\s*[:=#]?\s*["']?(\d+)`)
	numbers := []int{}
	for _, match := range naming.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(match[1]); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	slices.Reverse(numbers)
	return numbers
}
