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
	switch first := items[0]; first.class() {
	case said:
		r.Role = "assistant"
		for i := range items {
			r.said(items[i])
		}
	case result:
		r.Role, r.Result = "tool", first.answers().Text()
		r.output(first.Get("output"))
	case typed:
		r.Role = "user"
		r.content(first.Get("content"))
	case system, wish:
		if r.Role = "system"; first.isMessage() {
			r.content(first.Get("content"))
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

// reading is a message that is being read.
type reading struct {
	session.Content
	texts, thoughts []string
}

func (r *reading) said(it *item) {
	switch {
	case it.isMessage():
		r.content(it.Get("content"))
	case it.isReasoning():
		for _, list := range [...]rawjson.Value{it.Get("summary"), it.Get("content")} {
			for element := range rawjson.Elements(list.Raw) {
				r.thoughts = append(r.thoughts, split.Member(element, "text").Text())
			}
		}
	case it.calls().Kind == rawjson.String:
		r.Calls = append(r.Calls, it.called())
	case it.is("item_reference"):
	default:
		r.Files = append(r.Files, it.file())
	}
}

// called is the call that an item makes. Calls of the server's own tools, such as a shell, have their type for a name.
func (it *item) called() session.Call {
	return session.Call{
		ID: it.calls().Text(), Name: cmp.Or(it.Get("name").Text(), strings.TrimSuffix(it.Get("type").Text(), "_call")),
		Arguments: cmp.Or(split.TextOrJSON(it.Get("arguments")), split.TextOrJSON(it.Get("input")), split.TextOrJSON(it.Get("action")), "{}"),
	}
}

// file stands for an item that is not looked into.
func (it *item) file() session.File {
	f := split.Unknown(it.Get("type").Text(), it.Raw)
	if it.class() == system {
		f.ID = it.mark()
	}
	return f
}

// mark names a compaction, empty if upstream keeps what it holds.
func (it *item) mark() string {
	if held := split.Member(rawjson.ValueOf(it.Raw), "encrypted_content").Text(); held != "" {
		return split.Mark(held)
	}
	return ""
}

// output reads what a call gave: a text, parts, or what a shell printed.
func (r *reading) output(v rawjson.Value) {
	if v.Kind == rawjson.Object {
		r.part(v)
		return
	}
	r.content(v)
}

// content reads a text or parts.
func (r *reading) content(v rawjson.Value) {
	if text := v.Text(); text != "" {
		r.texts = append(r.texts, text)
	}
	if v.Kind == rawjson.Array {
		for element := range rawjson.Elements(v.Raw) {
			r.part(element)
		}
	}
}

// part reads a part of a content. A shell's output has what it printed.
func (r *reading) part(v rawjson.Value) {
	kind, printed, failed := split.Member(v, "type"), split.Member(v, "stdout"), split.Member(v, "stderr")
	switch {
	case isText(kind):
		r.texts = append(r.texts, split.Member(v, "text").Text())
	case kind.Is("refusal"):
		r.texts = append(r.texts, split.Member(v, "refusal").Text())
	case kind.Is("input_image"), kind.Is("computer_screenshot"):
		r.Images = append(r.Images, split.Image(split.Member(v, "image_url"), split.Member(v, "detail")))
	case kind.Is("input_file"):
		r.Files = append(r.Files, fileOf(v))
	case printed.Kind == rawjson.String || failed.Kind == rawjson.String:
		r.texts = append(r.texts, printed.Text()+failed.Text())
	default:
		r.Files = append(r.Files, split.Unknown(kind.Text(), v.Raw))
	}
}

// texts are the types of parts that are text.
var texts = []string{"input_text", "output_text", "text"}

func isText(kind rawjson.Value) bool { return slices.ContainsFunc(texts, kind.Is) }

// attached reports whether a content has anything but text.
func attached(v rawjson.Value) bool {
	if v.Kind == rawjson.Array {
		return split.Any(v, func(part rawjson.Value) bool { return part.Kind == rawjson.Array || attached(part) })
	}
	kind := split.Member(v, "type")
	return v.Kind == rawjson.Object && !isText(kind) && !kind.Is("refusal") && split.Member(v, "stdout").Kind == 0
}

func fileOf(part rawjson.Value) session.File {
	name := cmp.Or(split.Member(part, "filename").Text(), split.Cut(split.Member(part, "file_url").Text()))
	f := session.File{Kind: session.FileDocument, Name: name, ID: split.Member(part, "file_id").Text()}
	text := split.Plain(split.Member(part, "file_data"))
	data, media, ok := split.Inline(text)
	if !ok {
		data = text
	}
	f.Bytes, f.Format = data.Size(), media
	return f
}
