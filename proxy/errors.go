package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

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

func (e apiError) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message) }

// body is the error as JSON, in a dialect's shape; nil: in OpenAI's.
func (e apiError) body(in dialect.Dialect) []byte {
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

// Codes by which errors are told apart.
const (
	codeShare       = "share_exceeded"       // a client holds as much as it may while others have room
	codeUnreachable = "upstream_unreachable" // upstream did not get the request, or did not answer it at all
	codeInternal    = "internal_error"       // a defect of ours
)

// statusClientGone is nginx's status for a client that left before it was answered; it is counted, never read.
const statusClientGone = 499

// errClientGone is for a client that has left.
var errClientGone = errors.New("client gone")

var (
	errCompactionUnavailable = apiError{
		Status: 503, Type: typeServer, Code: "compaction_unavailable", Retry: 5,
		Message: "The store that keeps the secret for compactions cannot be reached. Try again shortly.",
	}
	errNoRecord = apiError{
		Status: 502, Type: typeServer, Code: "compaction_failed",
		Message: "The model was asked for a record of the history, and what it gave is none. Nothing was lost: try again.",
	}
	errEncoding = badRequest("invalid_encoding",
		"The body is not what its Content-Encoding says, or more follows it. Encode it once and whole.")
	errOverloaded = apiError{
		Status: 503, Type: typeLimit, Code: "overloaded", Retry: 1, Close: true,
		Message: "The proxy holds as many request bytes as it may (limits.bytes_in_flight). Try again shortly.",
	}
	errShare = apiError{
		Status: 503, Type: typeLimit, Code: codeShare, Retry: 1, Close: true,
		Message: "Requests with this key hold their share of the bytes that the proxy may hold. Try again when some are over.",
	}
	errUnauthorized = apiError{
		Status: 401, Type: typeInvalid, Code: "invalid_api_key",
		Message: "The API key is missing or belongs to no tenant. Send a tenant's key as 'Authorization: Bearer KEY'.",
	}
	errUpgrade = apiError{
		Status: 426, Type: typeInvalid, Code: "websocket_unsupported", Close: true,
		Message: "WebSocket connections are not supported here. Send the request by HTTP POST.",
	}
	// errTooLongToRead is for an answer that may have calls which the client must not get.
	errTooLongToRead = badUpstream("upstream_answer_too_long", fmt.Sprintf("The upstream's answer is longer than %d MiB, and may call tools "+
		"of the proxy's own. Have it streamed, or send X-Dewpoint-Condense: off.", mostRecord>>20))
	errStopping = apiError{
		Status: 503, Type: typeServer, Code: "shutting_down", Retry: 1, Close: true,
		Message: "The proxy is shutting down. Try again shortly.",
	}
	errInternal = apiError{Status: 500, Type: typeServer, Code: codeInternal, Message: "The proxy failed. The log has the cause."}
)

func badRequest(code, message string) apiError {
	return apiError{Status: 400, Type: typeInvalid, Code: code, Message: message}
}

func badUpstream(code, message string) apiError {
	return apiError{Status: 502, Type: typeServer, Code: code, Message: message}
}

func errTooLarge(limit int64) apiError {
	return apiError{
		Status: 413, Type: typeInvalid, Code: "request_too_large", Close: true,
		Message: fmt.Sprintf("The request body is larger than the %d bytes this proxy takes. Send less, or raise limits.max_body.", limit),
	}
}

// answer writes an error of our own.
func (e apiError) answer(ctx *fasthttp.RequestCtx, in dialect.Dialect) {
	id := string(ctx.Response.Header.Peek(toldID))
	ctx.Response.Reset()
	ctx.Response.Header.Set(toldID, id)
	ctx.SetStatusCode(e.Status)
	ctx.SetContentType("application/json")
	if e.Retry > 0 {
		ctx.Response.Header.Set("Retry-After", fmt.Sprint(e.Retry))
	}
	if e.Status == http.StatusUpgradeRequired {
		ctx.Response.Header.Set("Upgrade", "HTTP/1.1")
	}
	if e.Close {
		ctx.SetConnectionClose()
	}
	ctx.SetBody(e.body(in))
}

// refuse answers with an error. A client that has left is only counted.
func (r *request) refuse(ctx *fasthttp.RequestCtx, err error) {
	if e, stays := r.failedWith(err); stays {
		e.answer(ctx, r.asked.speaks)
		return
	}
	ctx.SetConnectionClose()
	ctx.SetStatusCode(statusClientGone)
}

// failedWith takes note of a request's error, and gives it as the client is told of it, if that has not left.
func (r *request) failedWith(err error) (e apiError, stays bool) {
	switch {
	case errors.Is(err, errClientGone):
		r.seen.end(statusClientGone, CodeClientGone)
		return e, false
	case !errors.As(err, &e):
		r.server.o.Log.Error("request failed", zap.Error(err))
		e = errInternal
	}
	r.seen.end(e.Status, e.Code)
	return e, true
}

// tell gives an error as an event of a stream that has begun; nothing if the client has left.
func (r *request) tell(err error) []byte {
	if e, stays := r.failedWith(err); stays {
		return r.asked.speaks.Event(e.body(r.asked.speaks))
	}
	return nil
}

// survives takes a step, and reports whether it did not panic.
func (o *Options) survives(step func()) (did bool) {
	defer func() {
		if v := recover(); v != nil {
			o.panicked(v)
		}
	}()
	step()
	return true
}

func (o *Options) panicked(v any) {
	o.Log.Error("panic", zap.Any("value", v), zap.ByteString("stack", debug.Stack()))
	o.Faults.Panicked()
}
