package proxy

import (
	"bytes"
	"net/http"
	"strings"

	"golang.org/x/text/transform"
)

// shortestSecret is how long a key must be to be looked for in answers: a shorter one might be any word.
const shortestSecret = 8

// redact has an answer that may be an error not show the operator's key: some servers repeat it when they refuse it. What is in its
// place is as long, so that the answer's length stays true. A compressed answer is not looked into.
func redact(resp *http.Response, key string) {
	if len(key) < shortestSecret {
		return
	}
	m := masking{key: []byte(key), mask: bytes.Repeat([]byte{'*'}, len(key))}
	for _, values := range resp.Header {
		for i := range values {
			values[i] = strings.ReplaceAll(values[i], key, string(m.mask))
		}
	}
	resp.Status = strings.ReplaceAll(resp.Status, key, string(m.mask))
	if suspicious(resp) {
		resp.Body = spliced{transform.NewReader(resp.Body, m), resp.Body}
	}
}

// masking replaces a key by a mask of its length. It holds back what may be the beginning of a key.
type masking struct {
	transform.NopResetter
	key, mask []byte
}

// Transform implements transform.Transformer.
func (m masking) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		rest := src[nSrc:]
		at := bytes.Index(rest, m.key)
		safe := at
		if at < 0 {
			if safe = len(rest); !atEOF {
				safe -= m.begun(rest)
			}
		}
		n := copy(dst[nDst:], rest[:safe])
		nDst, nSrc = nDst+n, nSrc+n
		switch {
		case n < safe, at >= 0 && len(dst)-nDst < len(m.mask):
			return nDst, nSrc, transform.ErrShortDst
		case at < 0 && nSrc < len(src):
			return nDst, nSrc, transform.ErrShortSrc
		case at >= 0:
			nDst, nSrc = nDst+copy(dst[nDst:], m.mask), nSrc+len(m.key)
		}
	}
	return nDst, nSrc, nil
}

// begun is how many bytes at the end of text may be the beginning of the key.
func (m masking) begun(text []byte) int {
	for n := min(len(text), len(m.key)-1); n > 0; n-- {
		if bytes.HasSuffix(text, m.key[:n]) {
			return n
		}
	}
	return 0
}
