package replay

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/session"
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
	messages []session.Content
	demands
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
func standIn(w wire, body []byte) (json.RawMessage, error) {
	d := w.dialect()
	r, err := d.Split("", body)
	if err != nil {
		return nil, err
	}
	c := call{demands: w.demands(body)}
	for _, m := range r.Messages {
		content, err := d.Read(m.Raw)
		if err != nil {
			return nil, err
		}
		c.messages = append(c.messages, content)
	}
	prompt := c.prompt()
	switch {
	case c.function != "":
		return w.encode(reply{function: c.function, arguments: string(c.fill(c.parameters, prompt))}), nil
	case c.format.Type != "":
		return w.encode(reply{text: string(c.fill(c.format, prompt))}), nil
	}
	lines := c.quote(prompt)
	last := max(len(lines)-1, 0)
	return w.encode(reply{text: currentState + strings.Join(lines[:last], "\n") + "\n" + nextStep + strings.Join(lines[last:], "")}), nil
}

// prompt returns the parts of the prompt to quote: lines of earlier records, and the events. If the call reuses the agent's prompt, the parts are
// the agent's messages.
func (c *call) prompt() (parts []string) {
	last := len(c.messages) - 1 // asks for the record
	for i := range c.messages {
		m := &c.messages[i]
		if i == last || m.Role == "system" || m.Result != "" {
			continue
		}
		part := m.Text + "\n"
		if earlier, ok := recordOf(part); ok {
			parts = append(parts, strings.Split(earlier, "\n")...)
			continue
		}
		for _, called := range m.Calls {
			part += called.Name + "(" + called.Arguments + ")\n"
		}
		parts = append(parts, part)
	}
	if len(parts) > 0 || last < 0 {
		return parts
	}
	for _, found := range quotable.FindAllStringSubmatch(c.messages[last].Text, -1) {
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
	if c.limit > 0 {
		most = min(most, 2*c.limit)
	}
	size := 0
	for i := range c.messages {
		size += utf8.RuneCountInString(c.messages[i].Text)
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

// fill returns an object with the properties that a schema requires. It shares the lines of a record equally between the texts.
func (c *call) fill(s schema, parts []string) []byte {
	lines := c.quote(parts)
	filled := map[string]any{}
	for i, name := range s.Required {
		if s.Properties[name].Type == "array" {
			filled[name] = eventNumbers(c.messages)
			continue
		}
		from, to := len(lines)*i/len(s.Required), len(lines)*(i+1)/len(s.Required)
		filled[name] = strings.Join(lines[from:to], "\n")
	}
	return assemble.Encode(filled)
}

var numbered = regexp.MustCompile(`<dewpoint_event id="(\d+)"`)

// eventNumbers returns the numbers of the events in a prompt, newest first.
func eventNumbers(messages []session.Content) []int {
	numbers := []int{}
	for i := range messages {
		for _, match := range numbered.FindAllStringSubmatch(messages[i].Text, -1) {
			if n, err := strconv.Atoi(match[1]); err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Reverse(numbers)
	return numbers
}
