package split

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
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

// At is n bytes from offset i on, nil if they are not all there.
func (e Encoded) At(i, n int) []byte {
	if i < 0 || i > e.Size()-n {
		return nil
	}
	from := i / 3 * 4
	to := min((i+n+2)/3*4, len(e))
	group := e[from:to]
	if len(group)%4 != 0 || group[len(group)-1] == '=' {
		group = []byte(strings.TrimRight(string(group), "="))
	}
	b, err := base64.RawStdEncoding.AppendDecode(nil, group)
	if err != nil || len(b) < i%3+n {
		return nil
	}
	return b[i%3 : i%3+n]
}

// Dimensions reads the width and height from the header of a PNG, GIF, JPEG or WebP, 0 if it cannot.
func Dimensions(e Encoded) (width, height int) {
	head := e.At(0, 24)
	switch {
	case head == nil:
		return 0, 0
	case string(head[:8]) == "\x89PNG\r\n\x1a\n" && string(head[12:16]) == "IHDR":
		return bounded(binary.BigEndian.Uint32(head[16:]), binary.BigEndian.Uint32(head[20:]))
	case string(head[:6]) == "GIF87a" || string(head[:6]) == "GIF89a":
		return int(binary.LittleEndian.Uint16(head[6:])), int(binary.LittleEndian.Uint16(head[8:]))
	case string(head[:3]) == "\xff\xd8\xff":
		return jpeg(e)
	case string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return webp(e, string(head[12:16]))
	}
	return 0, 0
}

// bounded refuses dimensions that no image has.
func bounded(width, height uint32) (int, int) {
	const most = 1 << 20
	if width > most || height > most {
		return 0, 0
	}
	return int(width), int(height)
}

// maxSegments bounds the search for a JPEG's frame header. Metadata before it takes a handful.
const maxSegments = 256

// jpeg goes from segment to segment to the frame header (ITU-T T.81, B.1 and B.2.2).
func jpeg(e Encoded) (width, height int) {
	i := 2
	for range maxSegments {
		b := e.At(i, 4)
		if b == nil || b[0] != 0xFF {
			return 0, 0
		}
		switch marker := b[1]; {
		case marker == 0xFF: // fill byte
			i++
			continue
		case marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC:
			if b = e.At(i+5, 4); b == nil {
				return 0, 0
			}
			return int(binary.BigEndian.Uint16(b[2:])), int(binary.BigEndian.Uint16(b))
		case marker == 0xDA: // image data begins
			return 0, 0
		}
		i += 2 + int(binary.BigEndian.Uint16(b[2:]))
	}
	return 0, 0
}

// webp reads the first chunk: lossy (RFC 6386, 9.1), lossless (RFC 9649, 3.4) or extended (RFC 9649, 2.7).
func webp(e Encoded, chunk string) (width, height int) {
	b := e.At(20, 10)
	switch {
	case b == nil:
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
