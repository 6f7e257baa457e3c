package proxy

import (
	"bytes"
	"io"
	"net/http"

	"github.com/dewpoint-proxy/dewpoint/internal/overflow"
)

// overflowRead bounds what is read of an error to recognise it, in bytes.
const overflowRead = 64 << 10

// overflowed recognises an overflow, and leaves the response as it was.
func overflowed(resp *http.Response) (overflow.Overflow, bool) {
	if !suspicious(resp) {
		return overflow.Overflow{}, false
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, overflowRead))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = failing{err}
	}
	resp.Body = &spliced{Reader: io.MultiReader(bytes.NewReader(head), rest), Closer: resp.Body}
	return overflow.Recognise(resp.StatusCode, resp.Header.Get("Content-Type"), head)
}

// suspicious reports whether an answer may be an overflow and can be read to find out: an error, or a short whole answer,
// since some gateways tell of errors with status 200. A stream is handed on as it comes.
func suspicious(resp *http.Response) bool {
	if resp.Header.Get("Content-Encoding") != "" {
		return false
	}
	short := resp.ContentLength > 0 && resp.ContentLength <= overflowRead && !streamed(resp.Header)
	return resp.StatusCode >= http.StatusBadRequest || resp.StatusCode == http.StatusOK && short
}

// spliced is a body of which the beginning has been read before.
type spliced struct {
	io.Reader
	io.Closer
}

// failing gives an error that was met before.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
