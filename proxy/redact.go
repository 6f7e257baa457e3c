package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// shortestSecret is how long a key must be to be looked for in answers: a shorter one might be any word.
const shortestSecret = 8

// redact has an answer that may be an error not show the operator's key: some servers repeat it when they refuse it. What is in its
// place is as long, so that the answer's length stays true. A compressed answer is not looked into. One that is too long to be is cut off.
func redact(resp *http.Response, key string) {
	if len(key) < shortestSecret {
		return
	}
	mask := strings.Repeat("*", len(key))
	for _, values := range resp.Header {
		for i := range values {
			values[i] = strings.ReplaceAll(values[i], key, mask)
		}
	}
	resp.Status = strings.ReplaceAll(resp.Status, key, mask)
	if !suspicious(resp) {
		return
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, mostRecord))
	if err == nil && len(head) == mostRecord {
		err = errBroken
	}
	putBack(resp, bytes.ReplaceAll(head, []byte(key), []byte(mask)), err)
}
