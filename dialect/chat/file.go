package chat

import (
	"bytes"
	"encoding/binary"
	"path"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// imageURL is the value of image_url: {"url", "detail"}, or in some clients the URL alone.
type imageURL struct{ url, detail rawjson.Value }

func (u *imageURL) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "url":
		return &u.url
	case "detail":
		return &u.detail
	}
	return nil
}

func readImage(v rawjson.Value) session.Image {
	u := imageURL{url: v}
	if v.Kind == rawjson.Object {
		u.url = rawjson.Value{}
		split.Fill(&u, v.Raw)
	}
	image := session.Image{Detail: u.detail.Text()}
	data, _, ok := split.Inline(split.Plain(u.url))
	if !ok {
		return image
	}
	image.Bytes = data.Size()
	image.Width, image.Height = split.Dimensions(data)
	return image
}

// attached reports whether content has parts that are neither text nor thinking.
func attached(content rawjson.Value) bool {
	if content.Kind != rawjson.Array {
		return false
	}
	for element := range rawjson.Elements(content.Raw) {
		p := contentPart{}
		split.Fill(&p, element.Raw)
		if element.Kind == rawjson.Object && !p.kind.Is("text") && !p.kind.Is("refusal") && !isThinking(p.kind) {
			return true
		}
	}
	return false
}

// attachment is what parts say of a file, each in its own way.
type attachment struct{ id, fileID, name, format, data, fileData, url rawjson.Value }

func (a *attachment) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "id":
		return &a.id
	case "file_id":
		return &a.fileID
	case "filename":
		return &a.name
	case "format":
		return &a.format
	case "data":
		return &a.data
	case "file_data":
		return &a.fileData
	case "url":
		return &a.url
	}
	return nil
}

// readFile reads a part that is neither text nor an image.
func (p *contentPart) readFile() session.File {
	switch {
	case p.kind.Is("file"):
		return readAttachment(session.FileDocument, p.file)
	case p.kind.Is("input_audio"):
		return readAttachment(session.FileAudio, p.inputAudio)
	case p.kind.Is("audio_url"):
		return readAttachment(session.FileAudio, p.audio)
	case p.kind.Is("video_url"):
		return readAttachment(session.FileVideo, p.video)
	}
	f := session.File{Kind: p.kind.Text(), Bytes: len(p.raw)}
	if f.Kind = f.Kind[:min(len(f.Kind), maxKind)]; split.Legible(p.raw) {
		f.Format = "json"
	}
	return f
}

const maxKind = 64 // bytes of the name of a part's type

func readAttachment(kind string, v rawjson.Value) session.File {
	a := attachment{url: v}
	if v.Kind == rawjson.Object {
		a.url = rawjson.Value{}
		split.Fill(&a, v.Raw)
	}
	f := session.File{Kind: kind, Name: a.name.Text(), ID: split.FirstText(a.fileID.Text(), a.id.Text()), Format: a.format.Text()}
	var data split.Encoded
	for _, v := range [...]rawjson.Value{a.url, a.data, a.fileData} {
		if found, media := dataOf(v); found != nil {
			data, f.Format = found, split.FirstText(f.Format, media)
		}
	}
	if f.Format == "" {
		f.Format = strings.ToLower(strings.TrimPrefix(path.Ext(f.Name), "."))
	}
	f.Bytes = data.Size()
	f.Seconds = seconds(&f, data)
	return f
}

// dataOf gives inline data, with its media type if it says one: a data URL, or plain base64. It is nil for another URL.
func dataOf(v rawjson.Value) (data split.Encoded, media string) {
	if v.Kind != rawjson.String {
		return nil, ""
	}
	text := split.Plain(v)
	if data, media, ok := split.Inline(text); ok {
		return data, media
	}
	const longestScheme = 16
	if len(text) == 0 || bytes.Contains(text[:min(len(text), longestScheme)], []byte(":")) {
		return nil, ""
	}
	return split.Encoded(text), ""
}

// Bytes of a second of media whose header does not tell.
const (
	wavSecond   = 48_000 // 24 kHz, 16 bits
	audioSecond = 16_000
	videoSecond = 125_000
)

// seconds is about how long media takes.
func seconds(f *session.File, data split.Encoded) int {
	var rate int
	switch head := data.At(0, 32); {
	case f.Kind == session.FileVideo:
		rate = videoSecond
	case f.Kind != session.FileAudio:
		return 0
	case head != nil && string(head[:4]) == "RIFF" && string(head[8:16]) == "WAVEfmt ":
		rate = int(binary.LittleEndian.Uint32(head[28:]))
	case strings.HasSuffix(f.Format, "wav"), strings.HasPrefix(f.Format, "pcm"):
		rate = wavSecond
	default:
		rate = audioSecond
	}
	if rate <= 0 {
		rate = audioSecond
	}
	return (f.Bytes + rate - 1) / rate
}
