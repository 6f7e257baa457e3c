package proxy

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/zap"
)

// Why a body on a path that is read was not.
const (
	unreadEncoding    = "encoding"    // it is encoded in a way that is not decoded here
	unreadUnsupported = "unsupported" // it is no conversation of its dialect
	unreadPath        = "path"        // servers may read the name of its deployment in several ways
)

// packed is a body as its client sent it, where that was encoded.
type packed struct {
	*body
	coding []string // the header's Content-Encoding
}

// codings are the encodings of a body, from the first to be decoded to the last.
func codings(h http.Header) (all []string) {
	for coding := range strings.SplitSeq(strings.Join(h["Content-Encoding"], ","), ",") {
		if coding = strings.ToLower(strings.TrimSpace(coding)); coding != "" && coding != "identity" {
			all = append(all, coding)
		}
	}
	return all
}

// unpack decodes the body of a request that is to be read. What it cannot decode passes as it came.
func (r *request) unpack() error {
	all := codings(r.header)
	if r.asked.dialect == nil || len(all) == 0 {
		return nil
	}
	open := decoder(all)
	if open == nil {
		r.pass(unreadEncoding)
		return nil
	}
	plain, err := r.reader().decode(r.body.bytes, open)
	if err != nil {
		return err
	}
	plain.packed = packed{r.body, r.header["Content-Encoding"]}
	r.body = plain
	return nil
}

// pass notes that a body is passed unread, though its path is one that is read.
func (r *request) pass(why string) {
	r.seen.record.Unread = why
	if _, told := r.server.once.unread.LoadOrStore(why, true); !told {
		r.server.o.Log.Warn("a body on a path that is condensed passes unread. Said once, counted in unread_total",
			zap.String("tenant", r.tenant.Name), zap.String("why", why))
	}
}

// wire gives what a body goes upstream as: an encoded one as it came, unless something of it was changed.
func (r *request) wire(parts [][]byte) ([][]byte, *body) {
	switch {
	case r.body.packed.body == nil:
		return parts, r.body
	case r.body.altered:
	case len(parts) == 1 && len(parts[0]) == len(r.body.bytes) && len(parts[0]) > 0 && &parts[0][0] == &r.body.bytes[0]:
		r.header["Content-Encoding"] = r.body.packed.coding
		return [][]byte{r.body.packed.bytes}, r.body.packed.body
	}
	r.header.Del("Content-Encoding")
	return parts, r.body
}

// opener begins to decode; done reports whether nothing is left that another server might read as a second body.
type opener func(*bytes.Reader) (from io.Reader, done func() bool, err error)

// decoder gives what decodes a body, nil if nothing here does.
func decoder(all []string) opener {
	if len(all) > 1 {
		return nil
	}
	switch all[0] {
	case "gzip", "x-gzip":
		return openGzip
	case "zstd":
		return openZstd
	}
	return nil
}

func openGzip(raw *bytes.Reader) (io.Reader, func() bool, error) {
	z, err := gzip.NewReader(raw)
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // that it is malformed is said once, for all of them
	}
	z.Multistream(false) // some servers read the first part only
	return z, func() bool { return raw.Len() == 0 }, nil
}

// largestWindow is what a decoder of zstd needs at most for a body sent by HTTP (RFC 9659).
const largestWindow = 8 << 20

func openZstd(raw *bytes.Reader) (io.Reader, func() bool, error) {
	z, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(largestWindow))
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // see openGzip
	}
	return z.IOReadCloser(), func() bool { return true }, nil
}

// decode gives a body decoded, held against the budget like any other and no larger than any other.
func (br *bodyReader) decode(raw []byte, open opener) (*body, error) {
	from, done, err := open(bytes.NewReader(raw))
	if err != nil {
		return nil, errEncoding()
	}
	if c, ok := from.(io.Closer); ok {
		defer c.Close() //nolint:errcheck // it holds memory only
	}
	b := br.newBody()
	err = br.fill(b, from, timeless{}, -1)
	if err == nil && done() {
		return b, nil
	}
	b.Release()
	if e, ok := errors.AsType[*unread](err); ok {
		return nil, e.error
	}
	return nil, errEncoding()
}

// timeless is a source that never waits for a client.
type timeless struct{}

func (timeless) SetReadDeadline(time.Time) error { return nil }
