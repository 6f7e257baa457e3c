package split

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	_ "image/gif" // the formats that image.DecodeConfig knows
	_ "image/jpeg"
	_ "image/png"
	"io"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Inline is the data of a base64 data URL, and its media type.
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

// Plain is the text of a string, without a copy where it has no escapes.
func Plain(v rawjson.Value) []byte {
	if v.Escapes != rawjson.Plain {
		return []byte(v.Text())
	}
	return v.Inner()
}

// Encoded is data in base64, without line breaks. It is decoded only where it is looked at.
type Encoded []byte

// Size is that of the data.
func (e Encoded) Size() int {
	n := len(e)
	for n > 0 && n > len(e)-2 && e[n-1] == '=' {
		n--
	}
	return n * 3 / 4
}

// Head is the first n bytes, nil if they are not all there.
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

// Image stands for an image that is given by a URL, or by its data in one.
func Image(url, detail rawjson.Value) session.Image {
	found := session.Image{Detail: detail.Text()}
	if data, _, ok := Inline(Plain(url)); ok {
		found.Bytes = data.Size()
		found.Width, found.Height = Dimensions(data)
	}
	return found
}

// Dimensions reads the width and height from the header of a PNG, GIF, JPEG or WebP, 0 if it cannot.
func Dimensions(e Encoded) (width, height int) {
	const most = 1 << 20 // no image is larger
	if head := e.Head(30); head != nil && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP" {
		return webp(head[20:], string(head[12:16]))
	}
	c, _, err := image.DecodeConfig(e.decoder())
	if err != nil || c.Width > most || c.Height > most {
		return 0, 0
	}
	return c.Width, c.Height
}

// webp reads the first chunk: lossy (RFC 6386, 9.1), lossless (RFC 9649, 3.4) or extended (RFC 9649, 2.7).
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

// legible reports whether JSON holds words, and not mostly encoded data.
func legible(raw []byte) bool {
	const (
		short = 4 << 10 // bytes
		word  = 64      // bytes between spaces, at most
	)
	return len(raw) < short || bytes.Count(raw, []byte{' '}) > len(raw)/word
}

// Unknown stands for a part or an item of a type that a dialect has no name for.
func Unknown(kind string, raw []byte) session.File {
	f := session.File{Kind: kind[:min(len(kind), 64)], Bytes: len(raw)}
	if legible(raw) {
		f.Format = "json"
	}
	return f
}
