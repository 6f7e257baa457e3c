package responses

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

var errForm = errors.New("it is no message")

// Read decodes one message. What is not of the expected type is left out; the error is that raw is nothing that Split gives.
func (d *Dialect) Read(raw []byte) (session.Content, error) {
	if isInstructions(raw) {
		return session.Content{Role: "system", Text: rawjson.ValueOf(raw).Text()}, nil
	}
	items, err := itemsOf(raw)
	if err != nil {
		return session.Content{}, fmt.Errorf("read message: %w", err)
	}
	r := reading{}
	switch first := &items[0]; first.class() {
	case said:
		r.Role = "assistant"
		for i := range items {
			r.said(&items[i])
		}
	case result:
		r.Role, r.Result = "tool", first.answers().Text()
		r.output(first.output)
	case typed:
		r.Role = "user"
		r.content(first.content)
	case system, wish:
		if r.Role = "system"; first.isMessage() {
			r.content(first.content)
		} else {
			r.Files = append(r.Files, first.file())
		}
	default:
		return session.Content{}, fmt.Errorf("read message: %w", errForm)
	}
	r.Text, r.Reasoning = strings.Join(r.texts, "\n"), strings.Join(r.thoughts, "\n")
	return r.Content, nil
}

func isInstructions(raw []byte) bool {
	return len(raw) > 0 && raw[0] == '"' && rawjson.Valid(raw, 0) == nil
}

// itemsOf are the items of a raw text, at least one.
func itemsOf(raw []byte) (items []item, err error) {
	all := slices.Concat([]byte{'['}, raw, []byte{']'})
	if err := rawjson.Valid(all, 0); err != nil {
		return nil, err
	}
	for element := range rawjson.Elements(all) {
		if element.Kind != rawjson.Object {
			return nil, errForm
		}
		it := item{raw: element.Raw}
		split.Fill(&it, element.Raw)
		items = append(items, it)
	}
	if len(items) == 0 {
		return nil, errForm
	}
	return items, nil
}

// reading is a message that is being read.
type reading struct {
	session.Content
	texts, thoughts []string
}

func (r *reading) said(it *item) {
	switch {
	case it.isMessage():
		r.content(it.content)
	case it.isReasoning():
		for _, list := range [...]rawjson.Value{it.summary, it.content} {
			for element := range rawjson.Elements(list.Raw) {
				r.thoughts = append(r.thoughts, partOf(element).text.Text())
			}
		}
	case it.calls().Kind == rawjson.String:
		r.Calls = append(r.Calls, it.called())
	case it.kind.Is("item_reference"):
	default:
		r.Files = append(r.Files, it.file())
	}
}

// called is the call that an item makes. Calls of the server's own tools, such as a shell, have their type for a name.
func (it *item) called() session.Call {
	return session.Call{
		ID: it.calls().Text(), Name: split.FirstText(it.name.Text(), strings.TrimSuffix(it.kind.Text(), "_call")),
		Arguments: split.FirstText(split.TextOrJSON(it.arguments), split.TextOrJSON(it.input), split.TextOrJSON(it.action), "{}"),
	}
}

// file stands for an item that is not looked into.
func (it *item) file() session.File {
	f := unknown(it.kind.Text(), it.raw)
	if it.class() == system {
		f.ID = it.mark()
	}
	return f
}

// mark names a compaction, empty if upstream keeps what it holds.
func (it *item) mark() string {
	if held := split.Member(rawjson.ValueOf(it.raw), "encrypted_content").Text(); held != "" {
		return split.Mark(held)
	}
	return ""
}

// unknown is a part or an item of a type that this package has no name for.
func unknown(kind string, raw []byte) session.File {
	f := session.File{Kind: kind[:min(len(kind), 64)], Bytes: len(raw)}
	if split.Legible(raw) {
		f.Format = "json"
	}
	return f
}

// output reads what a call gave: a text, parts, or what a shell printed.
func (r *reading) output(v rawjson.Value) {
	if v.Kind == rawjson.Object {
		r.part(v)
		return
	}
	r.content(v)
}

func (r *reading) content(v rawjson.Value) {
	if v.Kind != rawjson.Array {
		if text := v.Text(); text != "" {
			r.texts = append(r.texts, text)
		}
		return
	}
	for element := range rawjson.Elements(v.Raw) {
		r.part(element)
	}
}

func (r *reading) part(v rawjson.Value) {
	switch p := partOf(v); {
	case p.kind.Is("input_text"), p.kind.Is("output_text"), p.kind.Is("text"):
		r.texts = append(r.texts, p.text.Text())
	case p.kind.Is("refusal"):
		r.texts = append(r.texts, p.refusal.Text())
	case p.kind.Is("input_image"), p.kind.Is("computer_screenshot"):
		r.Images = append(r.Images, p.image())
	case p.kind.Is("input_file"):
		r.Files = append(r.Files, p.file())
	case p.stdout.Kind == rawjson.String || p.stderr.Kind == rawjson.String:
		r.texts = append(r.texts, p.stdout.Text()+p.stderr.Text())
	default:
		r.Files = append(r.Files, unknown(p.kind.Text(), v.Raw))
	}
}

// attached reports whether a content has anything but text.
func attached(v rawjson.Value) bool {
	switch v.Kind {
	case rawjson.Array:
		for element := range rawjson.Elements(v.Raw) {
			if attached(element) {
				return true
			}
		}
		return false
	case rawjson.Object:
		p := partOf(v)
		return !p.kind.Is("input_text") && !p.kind.Is("output_text") && !p.kind.Is("text") && !p.kind.Is("refusal") && p.stdout.Kind == 0
	}
	return false
}

// part is what is known of a part of a content.
type part struct {
	kind, text, refusal, stdout, stderr           rawjson.Value
	url, detail, name, fileID, data, fileLocation rawjson.Value
}

// Slot gives the place of a known key.
func (p *part) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "type":
		return &p.kind
	case "text":
		return &p.text
	case "refusal":
		return &p.refusal
	case "stdout":
		return &p.stdout
	case "stderr":
		return &p.stderr
	case "image_url":
		return &p.url
	case "detail":
		return &p.detail
	case "filename":
		return &p.name
	case "file_id":
		return &p.fileID
	case "file_data":
		return &p.data
	case "file_url":
		return &p.fileLocation
	}
	return nil
}

// partOf reads an object; what is none says nothing.
func partOf(v rawjson.Value) (p part) {
	if v.Kind == rawjson.Object {
		split.Fill(&p, v.Raw)
	}
	return p
}

func (p *part) image() session.Image {
	image := session.Image{Detail: p.detail.Text()}
	if data, _, ok := split.Inline(split.Plain(p.url)); ok {
		image.Bytes = data.Size()
		image.Width, image.Height = split.Dimensions(data)
	}
	return image
}

func (p *part) file() session.File {
	f := session.File{Kind: session.FileDocument, Name: split.FirstText(p.name.Text(), split.Cut(p.fileLocation.Text())), ID: p.fileID.Text()}
	if data, media, ok := split.Inline(split.Plain(p.data)); ok {
		f.Bytes, f.Format = data.Size(), media
	} else {
		f.Bytes = split.Encoded(split.Plain(p.data)).Size()
	}
	return f
}
