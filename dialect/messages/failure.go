package messages

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Failure encodes an error in Anthropic's format, plus the stable code, which that format lacks.
// https://docs.claude.com/en/api/errors
func (d *Dialect) Failure(f dialect.Failure) []byte {
	return fmt.Appendf(nil, `{"type":"error","error":{"type":%q,"message":%s,"code":%s}}`,
		typeOf(f.Status), rawjson.AppendQuote(nil, f.Message), rawjson.AppendQuote(nil, f.Code))
}

// typeOf returns the type of Anthropic's errors with a status.
func typeOf(status int) string {
	if status >= 500 {
		return cmp.Or(types[status], "api_error")
	}
	return cmp.Or(types[status], "invalid_request_error")
}

var types = map[int]string{
	401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
	429: "rate_limit_error", 503: "overloaded_error", 504: "timeout_error",
}

// Event wraps an encoded error in a stream event.
func (d *Dialect) Event(failure []byte) []byte {
	return slices.Concat([]byte("event: error\ndata: "), failure, []byte("\n\n"))
}

// Key returns the header of an Anthropic API key.
func (d *Dialect) Key(key string) (name, value string) { return "X-Api-Key", key }
