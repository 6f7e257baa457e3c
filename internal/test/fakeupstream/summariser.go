package fakeupstream

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	extractShare = 8    // an extract may have one eighth of the prompt's characters,
	extractLimit = 2000 // but at most this many
	extractFloor = 300  // even for a short prompt it may have this many, so that half of them have room for a line
	lineLimit    = 120  // characters in a line of an extract
)

// Extract is a deterministic stand-in for a summarising model. Its summary is the first line of each section of the prompt (empty
// lines separate sections) but for the proxy's instructions, bounded to an eighth of the prompt. If there are too many lines it takes the first and the last ones.
// If the request demands a function call or a JSON schema, Extract fills the schema: strings with the summary, and lists of
// integers with the numbers of the events in the prompt, newest first.
func Extract(req *Request) Answer {
	text, top := kept.ReplaceAllString(data(req.Text()), ""), parse(req.Body)
	if name, schema := forcedFunction(top); name != "" {
		return Answer{ToolCalls: []ToolCall{{ID: "call_summary", Name: name, Arguments: string(fill(schema, text))}}}
	}
	for _, schema := range []value{top.at("response_format", "json_schema", "schema"), top.at("text", "format", "schema"),
		top.at("generationConfig", "responseJsonSchema")} {
		if schema.given() {
			return Answer{Content: string(fill(schema, text))}
		}
	}
	return Answer{Content: "CURRENT_STATE: " + strings.Join(extractLines(text), "\n")}
}

// data returns a prompt without the instructions around the proxy's own tags, or behind a conversation. A record that repeats them is refused.
func data(prompt string) string {
	for _, question := range [...]string{"Stop here, and write a record of this conversation.", "The conversation up to here is about to be replaced"} {
		if conversation, _, asked := strings.Cut(prompt, question); asked {
			return conversation
		}
	}
	from, to := strings.Index(prompt, "<dewpoint_"), strings.LastIndex(prompt, "</dewpoint_")
	if from < 0 || to < from {
		return prompt
	}
	return prompt[from:to]
}

// kept matches the parts of a prompt that are context only, not to be summarised.
var kept = regexp.MustCompile(`(?s)<dewpoint_kept.*?</dewpoint_kept>`)

// forcedFunction returns the function that tool_choice demands and its parameters, or "".
func forcedFunction(top value) (name string, parameters value) {
	if name := top.at("toolConfig", "functionCallingConfig", "allowedFunctionNames").first(); name.given() {
		return name.text, top.at("tools").first().at("functionDeclarations").first().at("parametersJsonSchema")
	}
	choice := top.at("tool_choice")
	for _, tool := range top.at("tools").elements {
		if name := tool.at("name").text; name != "" && name == choice.at("name").text {
			if parameters := tool.at("parameters"); parameters.kind == kindObject { // the Responses API
				return name, parameters
			}
			return name, tool.at("input_schema")
		}
		if name := tool.at("function", "name").text; name == choice.at("function", "name").text || choice.text == "required" {
			return name, tool.at("function", "parameters")
		}
	}
	return "", value{}
}

// extractLines returns the first lines of the sections. If there are too many, half of the bound comes from the front and half from
// the back.
func extractLines(text string) []string {
	half := max(extractFloor, min(extractLimit, utf8.RuneCountInString(text)/extractShare)) / 2
	lines := firstLines(text)
	size := func(i int) int { return utf8.RuneCountInString(lines[i]) + 1 }
	head, tail := 0, len(lines)
	for room := half; head < tail && size(head) <= room; head++ {
		room -= size(head)
	}
	for room := half; head < tail && size(tail-1) <= room; tail-- {
		room -= size(tail - 1)
	}
	return slices.Delete(lines, head, tail)
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

// fill returns a small value that fits the schema and is about the text. Its lists are of integers or of strings.
func fill(schema value, text string) json.RawMessage {
	if options := schema.at("enum").elements; len(options) > 0 {
		return options[0].raw
	}
	switch schemaType(schema) {
	case "object":
		return fillObject(schema.at("properties").members, text)
	case "array":
		if schemaType(schema.at("items")) == "integer" {
			return mustJSON(eventNumbers(text))
		}
		return mustJSON(extractLines(text))
	case "integer", "number":
		return json.RawMessage("0")
	case "boolean":
		return json.RawMessage("false")
	}
	return mustJSON(strings.Join(extractLines(text), "\n"))
}

// schemaType returns the type of a schema, the first of several.
func schemaType(schema value) string {
	kind := schema.at("type")
	return cmp.Or(kind.text, kind.first().text)
}

// tags matches the lines of a prompt that are tags of the proxy's. A record that repeats one is refused.
var tags = regexp.MustCompile(`(?m)^</?dewpoint_.*$`)

// fillObject divides the lines of one extract about equally between the string properties. The first property always gets a line.
func fillObject(properties []value, text string) json.RawMessage {
	text = tags.ReplaceAllString(text, "")
	lines := extractLines(text)
	cut := func(i int) int { return (len(lines)*i + len(properties) - 1) / len(properties) }
	filled := slices.Clone(properties)
	for i, p := range properties {
		if filled[i].raw = fill(p, text); schemaType(p) == "string" && len(p.at("enum").elements) == 0 {
			filled[i].raw = mustJSON(strings.Join(lines[cut(i):cut(i+1)], "\n"))
		}
	}
	return joinObject(filled)
}

var eventNumber = regexp.MustCompile(`(?i)\b(?:id|event)\b["']?\s*[:=#]?\s*["']?(\d+)`)

// eventNumbers returns the event numbers in the prompt, such as id="12", ID: 12 or event 12, newest first.
func eventNumbers(text string) []int {
	numbers := []int{}
	for _, match := range eventNumber.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(match[1]); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, func(a, b int) int { return b - a })
	return slices.Compact(numbers)
}
