package replay

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
)

// The size of a record of the stand-in, in characters. It is the prompt's size divided by quotedShare, at least quotedLeast and at most
// quotedMost. The largest record has about 1,000 tokens, which trigger economics assumes of summaries.
const (
	quotedShare = 8
	quotedLeast = 300 // so that half of it has room for a line
	quotedMost  = 4000
	quotedLine  = 120
)

// The sections of a record of the stand-in.
const (
	currentState = "CURRENT_STATE: "
	nextStep     = "NEXT_STEP: "
)

// call is a call of the proxy to the model that writes its records.
type call struct {
	Messages            []message
	MaxTokens           int `json:"max_tokens"`
	MaxCompletionTokens int `json:"max_completion_tokens"`
	Tools               []struct {
		Function struct {
			Name       string
			Parameters schema
		}
	}
	ToolChoice     json.RawMessage `json:"tool_choice"`
	ResponseFormat struct {
		JSONSchema struct{ Schema schema } `json:"json_schema"`
	} `json:"response_format"`
}

type message struct {
	Role      string
	Content   json.RawMessage
	ToolCalls []struct {
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// schema is the schema of an object, as far as the stand-in fills it.
type schema struct {
	Type       string
	Required   []string
	Properties map[string]struct{ Type string }
}

// standIn answers a call in place of a model, deterministically. Its record quotes the first line of each message that is to be summarised,
// except for results of tools. If the call demands a function or a schema, standIn calls the function or fills the schema: texts with the
// record, and lists with the numbers of the events in the prompt, newest first.
func standIn(body []byte) (json.RawMessage, error) {
	var c call
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, err
	}
	prompt := c.prompt()
	if name, parameters := c.demanded(); name != "" {
		function := map[string]any{"name": name, "arguments": string(c.fill(parameters, prompt))}
		calls := []any{map[string]any{"id": "call_record", "type": "function", "function": function}}
		return assemble.Encode(map[string]any{"role": "assistant", "content": nil, "tool_calls": calls}), nil
	}
	var text string
	if s := c.ResponseFormat.JSONSchema.Schema; s.Type != "" {
		text = string(c.fill(s, prompt))
	} else {
		lines := c.quote(prompt)
		last := max(len(lines)-1, 0)
		text = currentState + strings.Join(lines[:last], "\n") + "\n" + nextStep + strings.Join(lines[last:], "")
	}
	return assemble.Encode(map[string]any{"role": "assistant", "content": text}), nil
}

// prompt returns the parts of the prompt to quote: lines of earlier records, and the events. If the call reuses the agent's prompt, the parts are
// the agent's messages.
func (c *call) prompt() (parts []string) {
	last := len(c.Messages) - 1 // asks for the record
	for i := range c.Messages {
		m := &c.Messages[i]
		if i == last || m.Role == "system" || m.Role == "tool" {
			continue
		}
		part := textOf(m.Content) + "\n"
		if earlier, ok := recordOf(part); ok {
			parts = append(parts, strings.Split(earlier, "\n")...)
			continue
		}
		for _, called := range m.ToolCalls {
			part += called.Function.Name + "(" + called.Function.Arguments + ")\n"
		}
		parts = append(parts, part)
	}
	if len(parts) > 0 || last < 0 {
		return parts
	}
	for _, found := range quotable.FindAllStringSubmatch(textOf(c.Messages[last].Content), -1) {
		if text := found[2]; found[1] == "event" {
			parts = append(parts, callMark.ReplaceAllString(text, ""))
		} else {
			parts = append(parts, strings.Split(text, "\n")...)
		}
	}
	return parts
}

// recordOf returns the record in a message, and whether the message is one that the proxy wrote.
func recordOf(text string) (string, bool) {
	s := record.Parse(strings.TrimSpace(text))
	return s.Record, s.String() == strings.TrimSpace(text)
}

var (
	// quotable matches the parts of a prompt that a record is made from.
	quotable = regexp.MustCompile(`(?s)<dewpoint_(previous|part|event)(?: [a-z]+="[^"]*")*>\n(.*?)</dewpoint_`)
	// callMark matches the beginning of a line with a tool call in an event.
	callMark = regexp.MustCompile(`(?m)^call \S+: `)
)

// quote returns the first line of each part. If there are too many, half of the room is for those at the beginning and half for those at
// the end.
func (c *call) quote(parts []string) []string {
	var lines []string
	for _, part := range parts {
		if line := firstLine(part); line != "" {
			lines = append(lines, line)
		}
	}
	most := quotedMost
	if tokens := cmp.Or(c.MaxTokens, c.MaxCompletionTokens); tokens > 0 {
		most = min(most, 2*tokens)
	}
	size := 0
	for _, m := range c.Messages {
		size += utf8.RuneCountInString(textOf(m.Content))
	}
	half := max(quotedLeast, min(most, size/quotedShare)) / 2
	head, tail := 0, len(lines)
	room := func(i int) int { return utf8.RuneCountInString(lines[i]) + 1 }
	for left := half; head < tail && room(head) <= left; head++ {
		left -= room(head)
	}
	for left := half; head < tail && room(tail-1) <= left; tail-- {
		left -= room(tail - 1)
	}
	return slices.Delete(lines, head, tail)
}

// firstLine returns the first line of a part, except tags around what follows. It is empty for the result of a tool.
func firstLine(part string) string {
	if strings.HasPrefix(part, "result of call ") {
		return ""
	}
	for line := range strings.Lines(part) {
		line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), currentState), nextStep)
		if line == "" || strings.HasPrefix(line, "<") {
			continue
		}
		if runes := []rune(line); len(runes) > quotedLine-1 {
			line = string(runes[:quotedLine-2]) + "…"
		}
		return line
	}
	return ""
}

// demanded returns the function that the model must call, and its parameters.
func (c *call) demanded() (name string, parameters schema) {
	var choice struct{ Function struct{ Name string } }
	if json.Unmarshal(c.ToolChoice, &choice) != nil { // "auto", "none"
		return "", schema{}
	}
	for _, t := range c.Tools {
		if t.Function.Name == choice.Function.Name {
			return t.Function.Name, t.Function.Parameters
		}
	}
	return "", schema{}
}

// fill returns an object with the properties that a schema requires. It shares the lines of a record equally between the texts.
func (c *call) fill(s schema, parts []string) []byte {
	lines := c.quote(parts)
	filled := map[string]any{}
	for i, name := range s.Required {
		if s.Properties[name].Type == "array" {
			filled[name] = eventNumbers(c.Messages)
			continue
		}
		from, to := len(lines)*i/len(s.Required), len(lines)*(i+1)/len(s.Required)
		filled[name] = strings.Join(lines[from:to], "\n")
	}
	return assemble.Encode(filled)
}

var numbered = regexp.MustCompile(`<dewpoint_event id="(\d+)"`)

// eventNumbers returns the numbers of the events in a prompt, newest first.
func eventNumbers(messages []message) []int {
	numbers := []int{}
	for _, m := range messages {
		for _, match := range numbered.FindAllStringSubmatch(textOf(m.Content), -1) {
			if n, err := strconv.Atoi(match[1]); err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Reverse(numbers)
	return numbers
}

// textOf returns the text of a message's content: a text, or parts.
func textOf(content json.RawMessage) (text string) {
	var parts []struct{ Text string }
	if json.Unmarshal(content, &text) != nil && json.Unmarshal(content, &parts) == nil {
		for _, p := range parts {
			text += p.Text
		}
	}
	return text
}
