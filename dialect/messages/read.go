package messages

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

// Read decodes one message. It skips values of an unexpected type, and fails if raw has none of the forms that Split returns.
func (d *Dialect) Read(raw []byte) (session.Content, error) {
	p, err := parse(raw)
	if err != nil {
		return session.Content{}, fmt.Errorf("read message: %w", err)
	}
	c := session.Content{Role: p.role}
	if p.form == result {
		c.Result = split.Member(rawjson.ValueOf(raw), "tool_use_id").Text()
	}
	var thoughts []string
	c.Text, thoughts = readContent(p.content, &c)
	c.Reasoning = strings.Join(thoughts, "\n")
	return c, nil
}

// parsed is the raw text of a message, parsed.
type parsed struct {
	form    form
	role    string // "tool" for a result
	content rawjson.Value
}

func parse(raw []byte) (parsed, error) {
	p := parsed{form: formOf(raw), role: "user"}
	if p.form == blocks {
		raw = slices.Concat([]byte{'['}, raw, []byte{']'})
	}
	if err := rawjson.Valid(raw, 0); err != nil {
		return p, err
	}
	p.content = rawjson.ValueOf(raw)
	switch p.form {
	case whole:
		p.role = split.Member(p.content, "role").Text()
		p.content = split.Member(p.content, "content")
	case result:
		p.role = "tool"
		p.content = split.Member(p.content, "content")
	case system:
		p.role = "system"
	}
	if p.role == "" {
		return p, errors.New("not a message")
	}
	return p, nil
}

// readContent reads the calls, images and files of content into c, and returns its text and the texts of its thinking.
func readContent(content rawjson.Value, c *session.Content) (string, []string) {
	if content.Kind != rawjson.Array {
		return content.Text(), nil
	}
	var texts, thoughts []string
	for element := range rawjson.Elements(content.Raw) {
		b := split.Read(element, blockKeys)
		switch kind := b.Get("type").Text(); kind {
		case "text":
			texts = append(texts, b.Get("text").Text())
		case "thinking":
			thoughts = append(thoughts, b.Get("thinking").Text())
		case "tool_use":
			c.Calls = append(c.Calls, callOf(&b))
		case "image":
			data := split.TextBytes(split.Member(b.Get("source"), "data"))
			c.Images = append(c.Images, split.Encoded(data).Image())
		case "document":
			source := b.Get("source")
			data := split.Member(source, "data")
			if text := data.Text(); split.Member(source, "type").Is("text") && text != "" {
				texts = append(texts, text)
				continue
			}
			c.Files = append(c.Files, session.File{
				Kind: session.FileDocument, Name: b.Get("title").Text(), ID: split.Member(source, "file_id").Text(),
				Format: split.Member(source, "media_type").Text(), Bytes: split.Encoded(split.TextBytes(data)).Size(),
			})
		case "search_result":
			text, _ := readContent(b.Get("content"), c)
			texts = append(texts, text)
		case "redacted_thinking", "tool_result":
		default:
			file := split.UnknownFile(kind, element.Raw) // mostly calls and results of the server's own tools
			file.ID = split.CompactionID(contentOf(element))
			c.Files = append(c.Files, file)
		}
	}
	return strings.Join(texts, "\n"), thoughts
}

// callOf returns the call in a tool_use block.
func callOf(b *split.Object) session.Call {
	return session.Call{
		ID: b.Get("id").Text(), Name: b.Get("name").Text(), Arguments: cmp.Or(split.TextOrJSON(b.Get("input")), "{}"),
	}
}
