package chat

import (
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Read decodes one message. What is not of the expected type is left out; the error is that raw is no JSON object.
//
// Text is the string content, or the text parts joined by line feeds. The calls are those of tool_calls, the input of a
// custom tool standing for its arguments, and the older function_call, whose id is its name.
func (d *Dialect) Read(raw []byte) (session.Content, error) {
	if err := rawjson.Valid(raw, d.options.MaxDepth); err != nil {
		return session.Content{}, fmt.Errorf("read message: %w", err)
	}
	if rawjson.ValueOf(raw).Kind != rawjson.Object {
		return session.Content{}, fmt.Errorf("read message: it is not an object")
	}
	var m message
	split.Fill(&m, raw)
	c := session.Content{Role: m.role.Text(), Name: m.name.Text(), Calls: readCalls(&m)}
	if kindOf(c.Role) == session.Observation {
		c.Result = m.answers().Text()
	}
	thoughts := readParts(m.content, &c)
	c.Reasoning = split.FirstText(m.reasoningContent.Text(), m.reasoning.Text(), thoughts, blocks(m.thinking), blocks(m.details))
	return c, nil
}

func readCalls(m *message) []session.Call {
	var calls []session.Call
	for element := range rawjson.Elements(m.toolCalls.Raw) {
		var c call
		split.Fill(&c, element.Raw)
		split.Fill(&c.called, c.function.Raw)
		split.Fill(&c.input, c.custom.Raw)
		calls = append(calls, session.Call{
			ID:        c.id.Text(),
			Name:      split.FirstText(c.called.name.Text(), c.input.name.Text()),
			Arguments: split.FirstText(split.TextOrJSON(c.called.arguments), c.input.input.Text()),
		})
	}
	if m.functionCall.Kind == rawjson.Object {
		split.Fill(&m.function, m.functionCall.Raw)
		name := m.function.name.Text()
		calls = append(calls, session.Call{ID: name, Name: name, Arguments: split.TextOrJSON(m.function.arguments)})
	}
	return calls
}

// readParts puts content into c, and gives the text of thinking parts.
func readParts(content rawjson.Value, c *session.Content) (thoughts string) {
	if content.Kind == rawjson.String {
		c.Text = content.Text()
		return ""
	}
	var texts, thinking []string
	for element := range rawjson.Elements(content.Raw) {
		p := contentPart{raw: element.Raw}
		split.Fill(&p, element.Raw)
		switch {
		case element.Kind == rawjson.String:
			texts = append(texts, element.Text())
		case p.kind.Is("text"), p.kind.Is("refusal"):
			texts = append(texts, p.text.Text())
		case p.kind.Is("thinking"):
			thinking = append(thinking, p.thinking.Text())
		case p.kind.Is("image_url"):
			c.Images = append(c.Images, readImage(p.image))
		case element.Kind == rawjson.Object && !isThinking(p.kind):
			c.Files = append(c.Files, p.readFile())
		}
	}
	c.Text = strings.Join(texts, "\n")
	return strings.Join(thinking, "\n")
}

type contentPart struct {
	raw                         []byte
	kind, text, thinking, image rawjson.Value
	file, inputAudio            rawjson.Value
	audio, video                rawjson.Value
}

func (p *contentPart) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "type":
		return &p.kind
	case "text", "refusal":
		return &p.text
	case "thinking":
		return &p.thinking
	case "image_url":
		return &p.image
	case "file":
		return &p.file
	case "input_audio":
		return &p.inputAudio
	case "audio_url":
		return &p.audio
	case "video_url":
		return &p.video
	}
	return nil
}

// blocks is the readable text of thinking_blocks or reasoning_details.
func blocks(list rawjson.Value) string {
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
