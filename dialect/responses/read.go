package responses

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

var errForm = errors.New("not a message")

// Read decodes one message. It skips values of an unexpected type, and fails if raw has none of the forms that Split returns.
func (d *Dialect) Read(raw []byte) (session.Content, error) {
	if isString(raw) {
		return session.Content{Role: "system", Text: rawjson.ValueOf(raw).Text()}, nil
	}
	items, err := itemsOf(raw)
	if err != nil {
		return session.Content{}, fmt.Errorf("read message: %w", err)
	}
	c := contentReader{}
	first := items[0]
	switch first.class() {
	case modelOutput:
		c.Role = "assistant"
		for _, it := range items {
			c.readItem(d.resolved(it))
		}
	case toolResult:
		c.Role = "tool"
		c.Result = first.resultID().Text()
		c.readContent(first.Get("output"))
	case userMessage:
		c.Role = "user"
		if first.isRelayed() {
			c.Role = "tool" // like a result, it is not evidence of what the user wants
		}
		c.readContent(first.Get("content"))
	case systemMessage, compactionTrigger:
		c.Role = "system"
		if first.isMessage() {
			c.readContent(first.Get("content"))
		} else {
			c.Files = append(c.Files, first.file())
		}
	case standing:
		c.Role = "system"
		c.texts = append(c.texts, string(first.Raw))
	default:
		return session.Content{}, fmt.Errorf("read message: %w", errForm)
	}
	c.Text = strings.Join(c.texts, "\n")
	c.Reasoning = strings.Join(c.thoughts, "\n")
	return c.Content, nil
}

// isString reports whether raw is a JSON string, as the instructions are.
func isString(raw []byte) bool {
	return len(raw) > 0 && raw[0] == '"' && rawjson.Valid(raw, 0) == nil
}

// itemsOf returns the items of a raw text. It fails if there is none.
func itemsOf(raw []byte) (items []*item, err error) {
	all := slices.Concat([]byte{'['}, raw, []byte{']'})
	if err := rawjson.Valid(all, 0); err != nil {
		return nil, err
	}
	for element := range rawjson.Elements(all) {
		if element.Kind != rawjson.Object {
			return nil, errForm
		}
		items = append(items, itemOf(element))
	}
	if len(items) == 0 {
		return nil, errForm
	}
	return items, nil
}

// contentReader collects the content of a message.
type contentReader struct {
	session.Content
	texts, thoughts []string
	refusal         string
}

// readItem reads an item of the model's output.
func (c *contentReader) readItem(it *item) {
	switch {
	case it.isMessage():
		c.readContent(it.Get("content"))
	case it.isReasoning():
		for _, list := range [...]rawjson.Value{it.Get("summary"), it.Get("content")} {
			for element := range rawjson.Elements(list.Raw) {
				c.thoughts = append(c.thoughts, split.Member(element, "text").Text())
			}
		}
	case it.callID().Kind == rawjson.String:
		c.Calls = append(c.Calls, it.call())
	case it.isReference():
	default:
		c.Files = append(c.Files, it.file())
	}
}

// call returns the call in an item. Calls of built-in tools, such as a shell, are named after their type.
func (it *item) call() session.Call {
	return session.Call{
		ID:   it.callID().Text(),
		Name: cmp.Or(it.Get("name").Text(), strings.TrimSuffix(it.Get("type").Text(), "_call")),
		Arguments: cmp.Or(split.TextOrJSON(it.Get("arguments")), split.TextOrJSON(it.Get("input")),
			split.TextOrJSON(it.Get("action")), "{}"),
	}
}

// file describes an item whose content is not read.
func (it *item) file() session.File {
	f := split.UnknownFile(it.Get("type").Text(), it.Raw)
	f.ID = split.CompactionID(it.compaction())
	return f
}

// readContent reads a string, a part, or parts.
func (c *contentReader) readContent(v rawjson.Value) {
	if text := v.Text(); text != "" {
		c.texts = append(c.texts, text)
	}
	if v.Kind == rawjson.Object {
		c.readPart(v)
	}
	for element := range rawjson.Elements(v.Raw) {
		c.readPart(element)
	}
}

// readPart reads a content part, or the output of a shell.
func (c *contentReader) readPart(v rawjson.Value) {
	kind, stdout, stderr := split.Member(v, "type"), split.Member(v, "stdout"), split.Member(v, "stderr")
	switch {
	case isText(kind):
		c.texts = append(c.texts, split.Member(v, "text").Text())
	case kind.Is("refusal"):
		c.refusal += split.Member(v, "refusal").Text()
		c.texts = append(c.texts, split.Member(v, "refusal").Text())
	case kind.Is("input_image"), kind.Is("computer_screenshot"):
		c.Images = append(c.Images, split.Image(split.Member(v, "image_url"), split.Member(v, "detail")))
	case kind.Is("input_file"):
		c.Files = append(c.Files, fileOf(v))
	case stdout.Kind == rawjson.String || stderr.Kind == rawjson.String:
		c.texts = append(c.texts, stdout.Text()+stderr.Text())
	default:
		c.Files = append(c.Files, split.UnknownFile(kind.Text(), v.Raw))
	}
}

// textTypes are the types of text parts.
var textTypes = []string{"input_text", "output_text", "text"}

func isText(kind rawjson.Value) bool { return slices.ContainsFunc(textTypes, kind.Is) }

// hasAttachment reports whether content contains anything but text.
func hasAttachment(v rawjson.Value) bool {
	if v.Kind == rawjson.Array {
		return split.Any(v, func(part rawjson.Value) bool { return part.Kind == rawjson.Array || hasAttachment(part) })
	}
	kind := split.Member(v, "type")
	return v.Kind == rawjson.Object && !isText(kind) && !kind.Is("refusal") && split.Member(v, "stdout").Kind == 0
}

func fileOf(part rawjson.Value) session.File {
	name := cmp.Or(split.Member(part, "filename").Text(), split.Truncate(split.Member(part, "file_url").Text()))
	text := split.TextBytes(split.Member(part, "file_data"))
	data, media, ok := split.Inline(text)
	if !ok {
		data = text
	}
	id := split.Member(part, "file_id").Text()
	return session.File{Kind: session.FileDocument, Name: name, ID: id, Format: media, Bytes: data.Size()}
}
