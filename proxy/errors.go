package proxy

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/dialect"
)

// apiError is an error of our own. Code is stable; Message says what to do.
type apiError struct {
	Status  int
	Type    string
	Code    string
	Param   string
	Message string
	Retry   int // seconds for Retry-After, 0: none
	Close   bool
}

func (e *apiError) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message) }

// body is the error as JSON, in a dialect's shape; nil: in OpenAI's.
func (e *apiError) body(in dialect.Dialect) []byte {
	f := dialect.Failure{Status: e.Status, Type: e.Type, Code: e.Code, Param: e.Param, Message: e.Message}
	if in != nil {
		return in.Failure(f)
	}
	return f.OpenAI()
}

const (
	typeInvalid = "invalid_request_error"
	typeServer  = "server_error"
	typeLimit   = "rate_limit_error"
)

func errBadRequest(code, message string) *apiError {
	return &apiError{Status: 400, Type: typeInvalid, Code: code, Message: message}
}

func errCompactionRefused(err error) *apiError {
	return &apiError{
		Status: 400, Type: typeInvalid, Code: "invalid_compaction", Param: "input",
		Message: "A compaction item does not open: " + err.Error() + ". Leave the item out and send the history, or begin anew.",
	}
}

func errCompactionUnavailable() *apiError {
	return &apiError{
		Status: 503, Type: typeServer, Code: "compaction_unavailable", Retry: 5,
		Message: "The store that keeps the secret for compactions cannot be reached. Try again shortly.",
	}
}

func errNoRecord() *apiError {
	return &apiError{
		Status: 502, Type: typeServer, Code: "compaction_failed",
		Message: "The model was asked for a record of the history, and what it gave is none. Nothing was lost: try again.",
	}
}

func errTooLarge(limit int64) *apiError {
	return &apiError{
		Status: 413, Type: typeInvalid, Code: "request_too_large", Close: true,
		Message: fmt.Sprintf("The request body is larger than the %d bytes this proxy takes. Send less, or raise limits.max_body.", limit),
	}
}

func errEncoding() *apiError {
	return errBadRequest("invalid_encoding", "The body is not what its Content-Encoding says, or more follows it. Encode it once and whole.")
}

func errOverloaded() *apiError {
	return &apiError{
		Status: 503, Type: typeLimit, Code: "overloaded", Retry: 1, Close: true,
		Message: "The proxy holds as many request bytes as it may (limits.bytes_in_flight). Try again shortly.",
	}
}

// codeShare is for a client that holds as much as it may while others have room.
const codeShare = "share_exceeded"

func errShare() *apiError {
	return &apiError{
		Status: 503, Type: typeLimit, Code: codeShare, Retry: 1, Close: true,
		Message: "Requests with this key hold their share of the bytes that the proxy may hold. Try again when some are over.",
	}
}

func errUnauthorized() *apiError {
	return &apiError{
		Status: 401, Type: typeInvalid, Code: "invalid_api_key",
		Message: "The API key is missing or belongs to no tenant. Send a tenant's key as 'Authorization: Bearer KEY'.",
	}
}

func errUpgrade() *apiError {
	return &apiError{
		Status: 426, Type: typeInvalid, Code: "websocket_unsupported", Close: true,
		Message: "WebSocket connections are not supported here. Send the request by HTTP POST.",
	}
}

// codeUnreachable is for an upstream that did not get the request, or did not answer it at all.
const codeUnreachable = "upstream_unreachable"

func errUpstream(code, what string) *apiError {
	status := 502
	if code == "upstream_timeout" {
		status = 504
	}
	return &apiError{Status: status, Type: typeServer, Code: code, Message: what}
}

// errTooLongToRead is for an answer that may have calls which the client must not get.
func errTooLongToRead() *apiError {
	return errUpstream("upstream_answer_too_long", fmt.Sprintf("The upstream's answer is longer than %d MiB, and may call tools of the proxy's own. "+
		"Have it streamed, or send X-Dewpoint-Condense: off.", mostRecord>>20))
}

func errStopping() *apiError {
	return &apiError{
		Status: 503, Type: typeServer, Code: "shutting_down", Retry: 1, Close: true,
		Message: "The proxy is shutting down. Try again shortly.",
	}
}

// codeInternal is for a defect of ours.
const codeInternal = "internal_error"

func errInternal() *apiError {
	return &apiError{Status: 500, Type: typeServer, Code: codeInternal, Message: "The proxy failed. The log has the cause."}
}
