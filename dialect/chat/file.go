package chat

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"path"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// readImage reads the value of image_url: an object with url and detail, or, as some clients send it, a URL.
func readImage(v rawjson.Value) session.Image {
	detail := split.Member(v, "detail")
	if v.Kind == rawjson.Object {
		v = split.Member(v, "url")
	}
	return split.Image(v, detail)
}

// hasAttachment reports whether content has parts that are neither text nor thinking.
func hasAttachment(content rawjson.Value) bool {
	return content.Kind == rawjson.Array && split.Any(content, func(part rawjson.Value) bool {
		kind := split.Member(part, "type")
		return part.Kind == rawjson.Object && !kind.Is("text") && !kind.Is("refusal") && !isThinking(kind)
	})
}

// files maps the types of parts that are files. The member with the same name as the type describes the file.
var files = map[string]string{
	"file": session.FileDocument, "input_audio": session.FileAudio,
	"audio_url": session.FileAudio, "video_url": session.FileVideo,
}

// readFile reads a part that is neither text nor an image.
func readFile(part, kind rawjson.Value) session.File {
	name := kind.Text()
	if file, known := files[name]; known {
		return readAttachment(file, split.Member(part, name))
	}
	return split.UnknownFile(name, part.Raw)
}

func readAttachment(kind string, v rawjson.Value) session.File {
	a := split.Read(v, attachmentKeys)
	f := session.File{
		Kind: kind, Name: a.Get("filename").Text(), Format: a.Get("format").Text(),
		ID: cmp.Or(a.Get("file_id").Text(), a.Get("id").Text()),
	}
	var data split.Encoded
	for _, v := range [...]rawjson.Value{v, a.Get("url"), a.Get("data"), a.Get("file_data")} {
		if found, media := dataOf(v); found != nil {
			data, f.Format = found, cmp.Or(f.Format, media)
		}
	}
	if f.Format == "" {
		f.Format = strings.ToLower(strings.TrimPrefix(path.Ext(f.Name), "."))
	}
	f.Bytes = data.Size()
	f.Seconds = seconds(&f, data)
	return f
}

var attachmentKeys = []string{"id", "file_id", "filename", "format", "data", "file_data", "url"}

// dataOf returns the data of a data URL, with its media type, or of plain base64. It returns nil for another URL.
func dataOf(v rawjson.Value) (data split.Encoded, media string) {
	if v.Kind != rawjson.String {
		return nil, ""
	}
	text := split.TextBytes(v)
	if data, media, ok := split.Inline(text); ok {
		return data, media
	}
	const maxScheme = 16 // bytes
	if len(text) == 0 || bytes.Contains(text[:min(len(text), maxScheme)], []byte(":")) {
		return nil, ""
	}
	return split.Encoded(text), ""
}

// Assumed bytes per second of media whose header does not say.
const (
	wavRate   = 48_000 // 24 kHz, 16 bits
	audioRate = 16_000
	videoRate = 125_000
)

// seconds estimates the duration of media. It returns 0 for other files.
func seconds(f *session.File, data split.Encoded) int {
	var rate int
	head := data.Head(32)
	switch {
	case f.Kind == session.FileVideo:
		rate = videoRate
	case f.Kind != session.FileAudio:
		return 0
	case head != nil && string(head[:4]) == "RIFF" && string(head[8:16]) == "WAVEfmt ":
		rate = int(binary.LittleEndian.Uint32(head[28:]))
	case strings.HasSuffix(f.Format, "wav"), strings.HasPrefix(f.Format, "pcm"):
		rate = wavRate
	default:
		rate = audioRate
	}
	if rate <= 0 { // a broken header
		rate = audioRate
	}
	return (f.Bytes + rate - 1) / rate
}
