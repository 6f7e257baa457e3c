package chat

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Read decodes one message. It skips values of an unexpected type, and fails if raw is not a JSON object.
//
// Text is the string content, or the text parts joined by line feeds. Calls are the tool_calls, with the input of a custom
// tool as its arguments, and the older function_call, with its name as the id.
func (d *Dialect) Read(raw []byte) (session.Content, error) {
	m, err := parse(raw)
	if err != nil {
		return session.Content{}, fmt.Errorf("read message: %w", err)
	}
	c := session.Content{Role: m.Get("role").Text(), Name: m.Get("name").Text(), Calls: readCalls(&m)}
	if _, kind := roleOf(m.Get("role")); kind == session.Observation {
		c.Result = resultID(&m).Text()
	}
	thinking := readContent(m.Get("content"), &c)
	c.Reasoning = cmp.Or(m.Get("reasoning_content").Text(), m.Get("reasoning").Text(), thinking,
		blockText(m.Get("thinking_blocks")), blockText(m.Get("reasoning_details")))
	return c, nil
}

// parse parses the raw text of a message.
func parse(raw []byte) (m split.Object, err error) {
	if err := rawjson.Valid(raw, 0); err != nil {
		return m, err
	}
	v := rawjson.ValueOf(raw)
	if v.Kind != rawjson.Object {
		return m, errors.New("message is not a JSON object")
	}
	return split.Read(v, messageKeys), nil
}

func readCalls(m *split.Object) (calls []session.Call) {
	for element := range rawjson.Elements(m.Get("tool_calls").Raw) {
		function, custom := split.Member(element, "function"), split.Member(element, "custom")
		calls = append(calls, session.Call{
			ID:        split.Member(element, "id").Text(),
			Name:      cmp.Or(split.Member(function, "name").Text(), split.Member(custom, "name").Text()),
			Arguments: cmp.Or(split.TextOrJSON(split.Member(function, "arguments")), split.Member(custom, "input").Text()),
		})
	}
	if v := m.Get("function_call"); v.Kind == rawjson.Object {
		name := split.Member(v, "name").Text()
		calls = append(calls, session.Call{ID: name, Name: name, Arguments: split.TextOrJSON(split.Member(v, "arguments"))})
	}
	return calls
}

// readContent reads content into c and returns the text of its thinking parts.
func readContent(content rawjson.Value, c *session.Content) (thoughts string) {
	if content.Kind == rawjson.String {
		c.Text = content.Text()
		return ""
	}
	var texts, thinking []string
	for part := range rawjson.Elements(content.Raw) {
		kind := split.Member(part, "type")
		switch {
		case part.Kind == rawjson.String:
			texts = append(texts, part.Text())
		case kind.Is("text"), kind.Is("refusal"):
			texts = append(texts, cmp.Or(split.Member(part, "text").Text(), split.Member(part, "refusal").Text()))
		case kind.Is("thinking"):
			thinking = append(thinking, split.Member(part, "thinking").Text())
		case kind.Is("image_url"):
			c.Images = append(c.Images, readImage(split.Member(part, "image_url")))
		case part.Kind == rawjson.Object && !isThinking(kind):
			c.Files = append(c.Files, readFile(part, kind))
		}
	}
	c.Text = strings.Join(texts, "\n")
	return strings.Join(thinking, "\n")
}

// blockText returns the readable text of thinking_blocks or reasoning_details.
func blockText(list rawjson.Value) string {
	var texts []string
	for block := range rawjson.Elements(list.Raw) {
		for key, v := range rawjson.Members(block.Raw) {
			switch string(key.Raw) {
			case "thinking", "text", "summary":
				texts = append(texts, v.Text())
			}
		}
	}
	return strings.Join(texts, "\n")
}
