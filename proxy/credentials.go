package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
)

// withoutKeys removes the parameters that carry a client's key from a query, and leaves the rest verbatim.
func withoutKeys(query string) string {
	kept := slices.DeleteFunc(strings.Split(query, "&"), func(parameter string) bool {
		name, _, _ := strings.Cut(parameter, "=")
		name, _ = url.QueryUnescape(name)
		return agents.IsCredentialParameter(name)
	})
	return strings.Join(kept, "&")
}

// hideOperator removes what an answer says about the operator's account. Some servers repeat the key in their errors. Cookies would make all
// clients that share the account look like one.
func (r *request) hideOperator(resp *http.Response, key string) {
	resp.Header.Del("Set-Cookie")
	if len(key) < minMaskedKey {
		return
	}
	if resp.StatusCode >= http.StatusBadRequest && r.params.method != http.MethodHead {
		r.decodeError(resp)
	}
	mask(resp, key)
}

// decodeError makes an error readable, so that the operator's key can be masked in it. An error in an encoding that is not known is replaced.
func (r *request) decodeError(resp *http.Response) {
	decodeAnswer(resp)
	if len(codings(resp.Header)) == 0 {
		return
	}
	resp.Header.Del("Content-Encoding")
	e := badUpstream("upstream_error", fmt.Sprintf("The upstream answered with status %d, in an encoding that the proxy does not read.", resp.StatusCode))
	resp.Header.Set("Content-Type", "application/json")
	replaceBody(resp, e.body(r.params.clientDialect))
}

// minMaskedKey is the length of the shortest key that is looked for in answers. A shorter one might be any word.
const minMaskedKey = 8

// maskedAtOnce is how much of a body is searched for a key at once, in bytes.
const maskedAtOnce = 4 << 10

// mask replaces a key in an answer by as many asterisks, so that Content-Length stays true. A body that is encoded is not searched.
func mask(resp *http.Response, key string) {
	asterisks := strings.Repeat("*", len(key))
	for _, values := range resp.Header {
		for i := range values {
			values[i] = strings.ReplaceAll(values[i], key, asterisks)
		}
	}
	resp.Status = strings.ReplaceAll(resp.Status, key, asterisks)
	if len(codings(resp.Header)) == 0 {
		resp.Body = &maskedBody{ReadCloser: resp.Body, key: []byte(key)}
	}
}

// maskedBody is a body in which a key is replaced by asterisks, wherever chunks divide it. Of what has arrived it holds back only an end with
// which the key may begin.
type maskedBody struct {
	io.ReadCloser
	key    []byte
	buffer []byte // nil before the first Read
	ready  []byte // of buffer: for the reader
	held   []byte // of buffer: may be the beginning of the key
	err    error  // comes after ready
}

func (b *maskedBody) Read(p []byte) (int, error) {
	for len(b.ready) == 0 && b.err == nil {
		b.fill()
	}
	if len(b.ready) == 0 {
		return 0, b.err
	}
	n := copy(p, b.ready)
	b.ready = b.ready[n:]
	return n, nil
}

// fill reads once, appends the text to what was held back, and masks the key in both together.
func (b *maskedBody) fill() {
	if b.buffer == nil {
		b.buffer = make([]byte, maskedAtOnce+len(b.key))
	}
	had := copy(b.buffer, b.held)
	var n int
	n, b.err = b.ReadCloser.Read(b.buffer[had:])
	text := b.buffer[:had+n]
	for rest := text; ; {
		at := bytes.Index(rest, b.key)
		if at < 0 {
			break
		}
		copy(rest[at:], bytes.Repeat([]byte{'*'}, len(b.key)))
		rest = rest[at+len(b.key):]
	}
	b.held = nil
	if b.err == nil {
		b.held = text[len(text)-beginning(text, b.key):]
	}
	b.ready = text[:len(text)-len(b.held)]
}

// beginning returns the length of the longest end of text that is the beginning of a key, but not all of it.
func beginning(text, key []byte) int {
	end := text[max(0, len(text)-len(key)+1):]
	for {
		at := bytes.IndexByte(end, key[0])
		if at < 0 {
			return 0
		}
		if end = end[at:]; bytes.HasPrefix(key, end) {
			return len(end)
		}
		end = end[1:]
	}
}
