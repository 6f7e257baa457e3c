package proxy

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/zap"
)

// Why a body on a path that is read was not.
const (
	unreadEncoding    = "encoding"    // it is encoded in a way that is not decoded here
	unreadUnsupported = "unsupported" // it is no conversation of its dialect
	unreadPath        = "path"        // servers may read the name of its deployment in several ways
)

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
	if len(all) > 1 || !slices.Contains([]string{"gzip", "x-gzip", "zstd"}, all[0]) {
		r.pass(unreadEncoding)
		return nil
	}
	plain, err := r.reader().decode(r.body.bytes, all[0])
	if err != nil {
		return err
	}
	plain.packed, plain.coding = r.body, r.header["Content-Encoding"]
	r.body = plain
	return nil
}

// pass notes that a body is passed unread, though its path is one that is read.
func (r *request) pass(why string) {
	r.seen.record.Unread = why
	if r.server.first("unread", why) {
		r.server.o.Log.Warn("a body on a path that is condensed passes unread. Said once, counted in unread_total",
			zap.String("tenant", r.tenant.Name), zap.String("why", why))
	}
}

// wire gives what a body goes upstream as: an encoded one as it came, unless something of it was changed.
func (r *request) wire(header http.Header, parts [][]byte) ([][]byte, *body) {
	switch {
	case r.body.packed == nil:
		return parts, r.body
	case r.body.altered:
	case len(parts) == 1 && len(parts[0]) == len(r.body.bytes) && len(parts[0]) > 0 && &parts[0][0] == &r.body.bytes[0]:
		header["Content-Encoding"] = r.body.coding
		return [][]byte{r.body.packed.bytes}, r.body.packed
	}
	header.Del("Content-Encoding")
	return parts, r.body
}

// largestWindow is what a decoder of zstd needs at most for a body sent by HTTP (RFC 9659).
const largestWindow = 8 << 20

// decoder decodes a body.
func decoder(raw *bytes.Reader, coding string) (io.Reader, error) {
	if coding == "zstd" {
		z, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(largestWindow))
		if err != nil {
			return nil, err //nolint:wrapcheck // that it is malformed is said once, for all of them
		}
		return z.IOReadCloser(), nil
	}
	z, err := gzip.NewReader(raw)
	if err != nil {
		return nil, err //nolint:wrapcheck // likewise
	}
	z.Multistream(false) // some servers read the first part only
	return z, nil
}

// decode gives a body decoded, held against the budget like any other and no larger than any other. Nothing may be left that another
// server might read as a second body.
func (br *bodyReader) decode(encoded []byte, coding string) (*body, error) {
	raw := bytes.NewReader(encoded)
	from, err := decoder(raw, coding)
	if err != nil {
		return nil, errEncoding
	}
	if c, ok := from.(io.Closer); ok {
		defer c.Close() //nolint:errcheck // it holds memory only
	}
	b := br.newBody()
	if err = br.fill(b, from, nil, -1); err == nil && raw.Len() == 0 {
		return b, nil
	}
	b.Release()
	if errors.As(err, new(apiError)) {
		return nil, err
	}
	return nil, errEncoding
}
