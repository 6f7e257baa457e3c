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
	text, top := kept.ReplaceAllString(req.Text(), ""), asObject(req.Body)
	if name, schema := forcedFunction(top); name != "" {
		return Answer{ToolCalls: []ToolCall{{ID: "call_summary", Name: name, Arguments: string(fill(schema, text))}}}
	}
	for _, schema := range []json.RawMessage{at(top["response_format"], "json_schema", "schema"), at(top["text"], "format", "schema")} {
		if given(schema) {
			return Answer{Content: string(fill(schema, text))}
		}
	}
	return Answer{Content: "CURRENT_STATE: " + strings.Join(extractLines(text), "\n")}
}

// kept is what a summariser is shown for understanding only.
var kept = regexp.MustCompile(`(?s)<dewpoint_kept.*?</dewpoint_kept>`)

// forcedFunction returns the function that tool_choice demands and its parameters; "" when none is demanded.
func forcedFunction(top object) (name string, parameters json.RawMessage) {
	choice := top["tool_choice"]
	for _, tool := range asArray(top["tools"]) {
		if name := textAt(tool, "name"); name != "" && name == textAt(choice, "name") {
			if parameters := at(tool, "parameters"); kindOf(parameters) == kindObject { // the Responses API
				return name, parameters
			}
			return name, at(tool, "input_schema")
		}
		if name := textAt(tool, "function", "name"); name == textAt(choice, "function", "name") || asString(choice) == "required" {
			return name, at(tool, "function", "parameters")
		}
	}
	return "", nil
}

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
			if runes := []rune(line); len(runes) > lineLimit {
				line = string(runes[:lineLimit-1]) + "…"
			}
			lines = append(lines, line)
		}
		fresh = line == ""
	}
	return lines
}

// fill makes the smallest value that fits the schema and says something about the text.
func fill(schema json.RawMessage, text string) json.RawMessage {
	if options := asArray(at(schema, "enum")); len(options) > 0 {
		return options[0]
	}
	switch schemaType(schema) {
	case "object":
		return fillObject(membersOf(at(schema, "properties")), text)
	case "array":
		switch schemaType(at(schema, "items")) {
		case "integer", "number":
			return mustJSON(eventNumbers(text))
		case "string":
			return mustJSON(extractLines(text))
		}
		return json.RawMessage("[]")
	case "integer", "number":
		return json.RawMessage("0")
	case "boolean":
		return json.RawMessage("false")
	}
	return mustJSON(strings.Join(extractLines(text), "\n"))
}

// schemaType returns the type of a schema, the first of several.
func schemaType(schema json.RawMessage) string {
	kind := at(schema, "type")
	if kindOf(kind) == kindArray {
		kind = asArray(kind)[0]
	}
	return asString(kind)
}

// fillObject gives every property that is a text a share of the lines, about equal, so that all of them together stay within
// the bound of one. The first share is never empty.
func fillObject(properties []member, text string) json.RawMessage {
	lines := slices.Collect(strings.Lines(text))
	cut := func(i int) int { return (len(lines)*i + len(properties) - 1) / len(properties) }
	for i, p := range properties {
		part := text
		if schemaType(p.value) == "string" {
			part = strings.Join(lines[cut(i):cut(i+1)], "")
		}
		properties[i].value = fill(p.value, part)
	}
	return joinObject(properties)
}

var eventNumber = regexp.MustCompile(`(?i)\b(?:id|event)\b["']?\s*[:=#]?\s*["']?(\d+)`)

// eventNumbers returns the numbers that the prompt gives its events, such as id="12", ID: 12 or event 12, newest first.
func eventNumbers(text string) []int {
	numbers := []int{}
	for _, match := range eventNumber.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(match[1]); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	slices.Reverse(numbers)
	return numbers
}
