package split

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	_ "image/gif" // registers formats for image.DecodeConfig
	_ "image/jpeg"
	_ "image/png"
	"io"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Inline returns the data and the media type of a base64 data URL.
func Inline(text []byte) (data Encoded, media string, ok bool) {
	const scheme, mark = "data:", ";base64"
	head := text[:min(len(text), 256)]
	if len(head) < len(scheme) || !strings.EqualFold(string(head[:len(scheme)]), scheme) {
		return nil, "", false
	}
	kind, _, ok := strings.Cut(string(head), ",")
	if !ok || !strings.HasSuffix(kind, mark) {
		return nil, "", false
	}
	media, _, _ = strings.Cut(kind[len(scheme):], ";")
	return Encoded(text[len(kind)+1:]), media, true
}

// TextBytes returns the text of a string. It aliases v if the string has no escapes.
func TextBytes(v rawjson.Value) []byte {
	if v.Escapes != rawjson.Plain {
		return []byte(v.Text())
	}
	return v.Inner()
}

// Encoded is base64 data without line breaks. Its methods decode no more of it than they need.
type Encoded []byte

// Size returns the size of the decoded data.
func (e Encoded) Size() int { return base64.RawStdEncoding.DecodedLen(len(bytes.TrimRight(e, "="))) }

// Head returns the first n decoded bytes, or nil if there are fewer.
func (e Encoded) Head(n int) []byte {
	head := make([]byte, n)
	if _, err := io.ReadFull(e.decoder(), head); err != nil {
		return nil
	}
	return head
}

func (e Encoded) decoder() io.Reader {
	return base64.NewDecoder(base64.RawStdEncoding, bytes.NewReader(bytes.TrimRight(e, "=")))
}

// Image describes an image given by its URL, which may be a data URL.
func Image(url, detail rawjson.Value) session.Image {
	data, _, _ := Inline(TextBytes(url))
	img := data.Image()
	img.Detail = detail.Text()
	return img
}

// Image describes an image.
func (e Encoded) Image() session.Image {
	width, height := e.dimensions()
	return session.Image{Bytes: e.Size(), Width: width, Height: height}
}

// dimensions returns the width and height in the header of a PNG, GIF, JPEG or WebP image, or 0 if it cannot be read.
func (e Encoded) dimensions() (width, height int) {
	const maxSize = 1 << 20 // pixels; anything larger is a broken header
	if head := e.Head(30); head != nil && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP" {
		return webp(head[20:], string(head[12:16]))
	}
	c, _, err := image.DecodeConfig(e.decoder())
	if err != nil || c.Width > maxSize || c.Height > maxSize {
		return 0, 0
	}
	return c.Width, c.Height
}

// webp returns the size in the first chunk of a WebP file, which is lossy (RFC 6386, 9.1), lossless (RFC 9649, 3.4) or
// extended (RFC 9649, 2.7).
func webp(b []byte, chunk string) (width, height int) {
	switch {
	case chunk == "VP8 " && string(b[3:6]) == "\x9d\x01\x2a":
		return int(binary.LittleEndian.Uint16(b[6:])) & 0x3FFF, int(binary.LittleEndian.Uint16(b[8:])) & 0x3FFF
	case chunk == "VP8L" && b[0] == 0x2F:
		bits := binary.LittleEndian.Uint32(b[1:])
		return int(bits&0x3FFF) + 1, int(bits>>14&0x3FFF) + 1
	case chunk == "VP8X":
		return int(b[4]) + int(b[5])<<8 + int(b[6])<<16 + 1, int(b[7]) + int(b[8])<<8 + int(b[9])<<16 + 1
	}
	return 0, 0
}

// UnknownFile describes a part or an item whose type the dialect does not know. Its format is JSON if it consists mostly of words rather
// than encoded data.
func UnknownFile(kind string, raw []byte) session.File {
	const (
		maxKind  = 64      // bytes
		short    = 4 << 10 // bytes; shorter values always count as words
		wordSize = 64      // average bytes between spaces, at most
	)
	f := session.File{Kind: kind[:min(len(kind), maxKind)], Bytes: len(raw)}
	if len(raw) < short || bytes.Count(raw, []byte{' '}) > len(raw)/wordSize {
		f.Format = "json"
	}
	return f
}
