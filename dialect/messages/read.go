package messages

import (
	"encoding/base64"
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
			texts = append(texts, split.FirstText(b.title.Text(), documentText(b.source)))
		}
	}
	return strings.Join(texts, "\n"), thoughts
}

// source is where an image or a document comes from.
type source struct{ kind, data rawjson.Value }

// Slot gives the place of a known key.
func (s *source) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "type":
		return &s.kind
	case "data":
		return &s.data
	}
	return nil
}

func readImage(v rawjson.Value) session.Image {
	var s source
	split.Fill(&s, v.Raw)
	return session.Image{Bytes: base64.StdEncoding.DecodedLen(len(s.data.Inner()))}
}

// documentText is the text of a document that is sent as text.
func documentText(v rawjson.Value) string {
	var s source
	if split.Fill(&s, v.Raw); s.kind.Is("text") {
		return s.data.Text()
	}
	return ""
}
