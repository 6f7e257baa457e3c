package proxy

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/zap"
)

// Values of Record.Unread.
const (
	unreadEncoding    = "encoding"    // the body has a Content-Encoding that is not supported
	unreadUnsupported = "unsupported" // it is not a conversation of its dialect
	unreadPath        = "path"        // servers may read the name of the deployment differently
)

// codings lists the encodings of a body in the order in which they were applied.
func codings(h http.Header) (all []string) {
	for coding := range strings.SplitSeq(strings.Join(h["Content-Encoding"], ","), ",") {
		coding = strings.ToLower(strings.TrimSpace(coding))
		if coding != "" && coding != "identity" {
			all = append(all, coding)
		}
	}
	return all
}

// decodeBody decodes the body of a request that is to be parsed. A body with an unsupported encoding is left encoded, and marked as unread.
func (r *request) decodeBody() error {
	all := codings(r.header)
	r.body.coding = r.header["Content-Encoding"]
	if r.params.dialect == nil || len(all) == 0 {
		return nil
	}
	if len(all) > 1 || !slices.Contains([]string{"gzip", "x-gzip", "zstd"}, all[0]) {
		r.markUnread(unreadEncoding)
		return nil
	}
	plain, err := r.bodyReader().decode(r.body.bytes, all[0])
	if err != nil {
		return err
	}
	plain.original = r.body
	r.body = plain
	return nil
}

// markUnread records that a body is forwarded without being parsed, although its path is served.
func (r *request) markUnread(why string) {
	r.recorder.record.Unread = why
	if r.server.first("unread", why) {
		r.server.o.Log.Warn("a request body was forwarded unread. Logged once; counted in dewpoint_unread_total",
			zap.String("tenant", r.tenant.Name), zap.String("why", why))
	}
}

// wireBody returns the parts of the body to send and the body that holds them. A body that was decoded or rephrased is sent as it was
// unless it has changed; header gets its Content-Encoding.
func (r *request) wireBody(header http.Header, parts [][]byte) ([][]byte, *body) {
	b := r.body
	whole := len(parts) == 1 && len(b.bytes) > 0 && len(parts[0]) == len(b.bytes) && &parts[0][0] == &b.bytes[0]
	for whole && b.original != nil && !b.altered {
		b = b.original
		parts = [][]byte{b.bytes}
	}
	if header.Del("Content-Encoding"); b.coding != nil {
		header["Content-Encoding"] = b.coding
	}
	return parts, b
}

// maxDecoded is how much a compressed answer may decode to, in bytes: a thousand for each of the 128,000 tokens of a long answer.
const maxDecoded = 128 << 20

// decodeAnswer decodes an answer that upstream has compressed although it was asked not to: every client accepts an answer that is not compressed.
// An answer in an unknown coding stays as it is. Reading an answer fails once more than maxDecoded bytes of it were decoded.
func decodeAnswer(resp *http.Response) {
	all := codings(resp.Header)
	if len(all) == 0 || resp.Request != nil && resp.Request.Method == http.MethodHead {
		return
	}
	body := io.Reader(resp.Body)
	for _, coding := range slices.Backward(all) {
		open := decoderOf(coding)
		if open == nil {
			return
		}
		body = &decoded{encoded: body, open: open}
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{http.MaxBytesReader(nil, io.NopCloser(body), maxDecoded), resp.Body}
	resp.ContentLength = -1
	for _, name := range [...]string{"Content-Encoding", "Content-Length"} {
		resp.Header.Del(name)
	}
}

// decoderOf opens a coding of an answer. It returns nil if the coding is not known.
func decoderOf(coding string) func(encoded io.Reader) (io.Reader, error) {
	switch coding {
	case "gzip", "x-gzip":
		return func(encoded io.Reader) (io.Reader, error) {
			body := bufio.NewReader(encoded)
			if head, _ := body.Peek(2); len(head) == 2 && !bytes.Equal(head, []byte{0x1f, 0x8b}) {
				return body, nil // some servers name a coding that they do not apply
			}
			return gzip.NewReader(body)
		}
	case "deflate":
		return func(encoded io.Reader) (io.Reader, error) {
			body := bufio.NewReader(encoded)
			if head, _ := body.Peek(2); len(head) == 2 && (head[0]&0x0f != 8 || binary.BigEndian.Uint16(head)%31 != 0) {
				return flate.NewReader(body), nil // many servers leave out the header that the standard asks for
			}
			return zlib.NewReader(body)
		}
	case "br":
		return func(encoded io.Reader) (io.Reader, error) { return brotli.NewReader(encoded), nil }
	case "zstd":
		return func(encoded io.Reader) (io.Reader, error) {
			return zstd.NewReader(encoded, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		}
	}
	return nil
}

// decoded is a body without one of its codings. It is opened by the first Read, which may have to wait for the coding's header. An empty body
// stays empty.
type decoded struct {
	encoded io.Reader
	open    func(io.Reader) (io.Reader, error)
	plain   io.Reader // nil: not opened yet
}

func (d *decoded) Read(p []byte) (int, error) {
	if d.plain == nil {
		plain, err := d.open(d.encoded)
		if err != nil {
			return 0, err
		}
		d.plain = plain
	}
	return d.plain.Read(p)
}

// maxWindow is the largest zstd window that a body sent over HTTP may need (RFC 9659).
const maxWindow = 8 << 20

// decode returns the decoded body, under the same limit and budget as any other. Bytes after the end of the encoding are refused, since
// another server might read them as a second body.
func (br *bodyReader) decode(encoded []byte, coding string) (*body, error) {
	raw := bytes.NewReader(encoded)
	var decoder io.Reader
	if coding == "zstd" {
		z, err := zstd.NewReader(raw,
			zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, errEncoding
		}
		defer z.Close()
		decoder = z
	} else {
		z, err := gzip.NewReader(raw)
		if err != nil {
			return nil, errEncoding
		}
		z.Multistream(false) // some servers read the first member only
		decoder = z
	}
	b := &body{reader: br}
	err := br.fill(b, decoder, nil, -1)
	if err == nil && raw.Len() == 0 {
		return b, nil
	}
	b.Release()
	if errors.As(err, new(apiError)) {
		return nil, err
	}
	return nil, errEncoding
}
