package gemini

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

// form is the form of the raw text of a message.
type form int

const (
	whole  form = iota // an element of the list
	result             // a part with the result of a call
	run                // other parts of a user message
	system             // the parts of the system instruction
)

// formOf returns the form of a raw text. An element of the list has parts or a role, which a part has not.
func formOf(raw []byte) form {
	if len(raw) == 0 || raw[0] != '{' {
		return system
	}
	f := run
	for key := range rawjson.Members(raw) {
		switch string(key.Raw) {
		case "role", "parts":
			return whole
		case "functionResponse", "function_response":
			f = result
		}
	}
	if string(raw) == "{}" {
		return whole
	}
	return f
}

// parsed is the raw text of a message, parsed.
type parsed struct {
	form  form
	role  string // "tool" for a result
	parts []byte // a list
}

func parse(raw []byte) (parsed, error) {
	p := parsed{form: formOf(raw), role: "user", parts: raw}
	if p.form == run || p.form == result {
		p.parts = slices.Concat([]byte{'['}, raw, []byte{']'})
	}
	if err := rawjson.Valid(p.parts, 0); err != nil {
		return p, err
	}
	switch p.form {
	case whole:
		all := rawjson.ValueOf(raw)
		if p.role = roleOf(split.Member(all, "role")); p.role == "model" {
			p.role = "assistant"
		}
		p.parts = split.Member(all, "parts").Raw
		if all := elements(p.parts); len(all) == 1 && p.role == "user" && isResult(partOf(rawjson.ValueOf(all[0]))) {
			p.role = "tool"
		}
	case result:
		p.role = "tool"
	case system:
		p.role = "system"
	}
	if p.role == "" || p.form == system && rawjson.ValueOf(raw).Kind != rawjson.Array {
		return p, errors.New("not a content")
	}
	return p, nil
}

// Read decodes one message. It skips values of an unexpected type, and fails if raw has none of the forms that Split returns. A result without
// an id is taken for that of the first call of its name.
func (d *Dialect) Read(raw []byte) (session.Content, error) {
	p, err := parse(raw)
	if err != nil {
		return session.Content{}, fmt.Errorf("read message: %w", err)
	}
	c := content{Content: session.Content{Role: p.role}, seen: map[string]int{}}
	for element := range rawjson.Elements(p.parts) {
		c.add(element)
	}
	c.Text, c.Reasoning = strings.Join(c.texts, "\n"), strings.Join(c.thoughts, "\n")
	return c.Content, nil
}

// content is what has been read of a message.
type content struct {
	session.Content
	texts, thoughts []string
	seen            map[string]int // calls without an id, by name
}

func (c *content) add(element rawjson.Value) {
	p := partOf(element)
	text, inline, file := p.Get("text"), p.get("inlineData", "inline_data"), p.get("fileData", "file_data")
	switch {
	case p.kind == isCall:
		c.Calls = append(c.Calls, session.Call{ID: idOf(&p, c.seen), Name: p.of.name.Text(), Arguments: cmp.Or(split.TextOrJSON(p.of.value), "{}")})
	case p.kind == isAnswer:
		c.addResult(&p.of)
	case p.isText() && p.isThought():
		c.thoughts = append(c.thoughts, text.Text())
	case p.isText():
		if words := text.Text(); words != "" {
			c.texts = append(c.texts, words)
		}
	case inline.Kind == rawjson.Object:
		c.addData(inline)
	case file.Kind == rawjson.Object:
		c.addFile(file)
	default:
		c.Files = append(c.Files, split.UnknownFile(kindOf(element), element.Raw)) // code that Gemini has run, and its own tools
	}
}

// addResult adds the result of a call, with its attachments.
func (c *content) addResult(answer *procedure) {
	c.Name = answer.name.Text()
	c.Result = cmp.Or(answer.id.Text(), numbered(c.Name, 0))
	text, _ := responseText(answer.value)
	c.texts = append(c.texts, text)
	for part := range rawjson.Elements(answer.parts.Raw) {
		c.add(part)
	}
}

// responseText returns the text of a response and the key under which it stands: if the response is an object with nothing but one text, that
// text, else its JSON.
func responseText(response rawjson.Value) (text, key string) {
	n, only := 0, rawjson.Value{}
	for name, v := range rawjson.Members(response.Raw) {
		n++
		only, key = v, string(name.Name(nil))
	}
	if n == 1 && only.Kind == rawjson.String {
		return only.Text(), key
	}
	return string(response.Raw), ""
}

// addData adds inline data.
func (c *content) addData(inline rawjson.Value) {
	media := member(inline, "mimeType", "mime_type").Text()
	data := split.Encoded(split.TextBytes(split.Member(inline, "data")))
	if strings.HasPrefix(media, "image/") {
		c.Images = append(c.Images, data.Image())
		return
	}
	c.Files = append(c.Files, session.File{Kind: fileKind(media), Name: member(inline, "displayName", "display_name").Text(), Format: media, Bytes: data.Size()})
}

// addFile adds a file by its address.
func (c *content) addFile(file rawjson.Value) {
	media := member(file, "mimeType", "mime_type").Text()
	if strings.HasPrefix(media, "image/") {
		c.Images = append(c.Images, session.Image{})
		return
	}
	c.Files = append(c.Files, session.File{Kind: fileKind(media), ID: member(file, "fileUri", "file_uri").Text(), Format: media})
}

// fileKind returns the kind of a file by its media type.
func fileKind(media string) string {
	switch kind, _, _ := strings.Cut(media, "/"); kind {
	case "audio":
		return session.FileAudio
	case "video":
		return session.FileVideo
	}
	return session.FileDocument
}

// kindOf names a part by its first member that is an object.
func kindOf(part rawjson.Value) string {
	for key, v := range rawjson.Members(part.Raw) {
		if v.Kind == rawjson.Object {
			return string(key.Name(nil))
		}
	}
	return "part"
}
