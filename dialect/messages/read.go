package messages

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Read decodes one message. What is not of the expected type is left out; the error is that raw is nothing that Split gives.
func (d *Dialect) Read(raw []byte) (session.Content, error) {
	p, err := parse(raw)
	if err != nil {
		return session.Content{}, fmt.Errorf("read message: %w", err)
	}
	c := session.Content{Role: p.role}
	if p.form == result {
		c.Result = p.block.answers.Text()
	}
	var thoughts []string
	c.Text, thoughts = readContent(p.content, &c)
	c.Reasoning = strings.Join(thoughts, "\n")
	return c, nil
}

// parsed is a raw text, taken apart.
type parsed struct {
	form    form
	role    string // "tool" for a result
	content rawjson.Value
	block   block // of a result
}

var errForm = errors.New("it is no message")

func parse(raw []byte) (parsed, error) {
	p := parsed{form: formOf(raw), role: "user"}
	if p.form == blocks {
		raw = slices.Concat([]byte{'['}, raw, []byte{']'})
	}
	if err := rawjson.Valid(raw, 0); err != nil {
		return p, err
	}
	switch p.form {
	case whole:
		var m message
		split.Fill(&m, raw)
		p.role, p.content = m.role.Text(), m.content
	case result:
		split.Fill(&p.block, raw)
		p.role, p.content = "tool", p.block.content
	case system:
		p.role, p.content = "system", rawjson.ValueOf(raw)
	case blocks:
		p.content = rawjson.ValueOf(raw)
	}
	if p.role == "" {
		return p, errForm
	}
	return p, nil
}

// readContent puts what a content holds into c, and gives its text and the texts of its thinking.
func readContent(content rawjson.Value, c *session.Content) (string, []string) {
	if content.Kind != rawjson.Array {
		return content.Text(), nil
	}
	var texts, thoughts []string
	for element := range rawjson.Elements(content.Raw) {
		var b block
		split.Fill(&b, element.Raw)
		switch b.kind.Text() {
		case "text":
			texts = append(texts, b.text.Text())
		case "thinking":
			thoughts = append(thoughts, b.thinking.Text())
		case "tool_use":
			c.Calls = append(c.Calls, session.Call{ID: b.id.Text(), Name: b.name.Text(), Arguments: split.FirstText(split.TextOrJSON(b.input), "{}")})
		case "image":
			c.Images = append(c.Images, readImage(b.source))
		case "document":
			if text := documentText(b.source); text != "" {
				texts = append(texts, text)
			} else {
				c.Files = append(c.Files, readDocument(&b))
			}
		case "search_result":
			text, _ := readContent(b.content, c)
			texts = append(texts, text)
		case "redacted_thinking", "tool_result":
		default:
			file := unknown(b.kind.Text(), element.Raw)
			file.ID = b.mark()
			c.Files = append(c.Files, file)
		}
	}
	return strings.Join(texts, "\n"), thoughts
}

// unknown is a block of a type that this package has no name for: what the server's own tools did, mostly.
func unknown(kind string, raw []byte) session.File {
	f := session.File{Kind: kind[:min(len(kind), 64)], Bytes: len(raw)}
	if split.Legible(raw) {
		f.Format = "json"
	}
	return f
}

// source is where an image or a document comes from.
type source struct{ kind, data, media, id rawjson.Value }

// Slot gives the place of a known key.
func (s *source) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "type":
		return &s.kind
	case "data":
		return &s.data
	case "media_type":
		return &s.media
	case "file_id":
		return &s.id
	}
	return nil
}

func sourceOf(v rawjson.Value) (s source) {
	split.Fill(&s, v.Raw)
	return s
}

func readImage(v rawjson.Value) session.Image {
	s := sourceOf(v)
	data := split.Encoded(split.Plain(s.data))
	image := session.Image{Bytes: data.Size()}
	if len(data) > 0 {
		image.Width, image.Height = split.Dimensions(data)
	}
	return image
}

func readDocument(b *block) session.File {
	s := sourceOf(b.source)
	return session.File{
		Kind: session.FileDocument, Name: b.title.Text(), ID: s.id.Text(), Format: s.media.Text(), Bytes: split.Encoded(split.Plain(s.data)).Size(),
	}
}

// documentText is the text of a document that is sent as text.
func documentText(v rawjson.Value) string {
	if s := sourceOf(v); s.kind.Is("text") {
		return s.data.Text()
	}
	return ""
}
