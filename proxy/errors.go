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

// apiError is an answer of the proxy's own. Code is stable; Message says what to do.
type apiError struct {
	Status  int
	Type    string
	Code    string
	Param   string
	Message string
	Retry   int  // seconds in Retry-After; 0: no such header
	Close   bool // the connection
}

func (e apiError) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message) }

// body returns the error as JSON in a dialect's shape. A nil dialect stands for OpenAI's.
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

// Codes that this package compares.
const (
	codeShare       = "share_exceeded"       // the client holds its share of the byte budget
	codeUnreachable = "upstream_unreachable" // upstream did not get the request, or sent no answer at all
	codeInternal    = "internal_error"       // a defect of the proxy
)

// statusClientGone is nginx's status for a client that left before it was answered. It is counted, but never sent.
const statusClientGone = 499

// errClientGone ends a request whose client has left.
var errClientGone = errors.New("client gone")

var (
	errCompactionUnavailable = apiError{
		Status: 503, Type: typeServer, Code: "compaction_unavailable", Retry: 5,
		Message: "The store that keeps the secret for compactions cannot be reached. Try again shortly.",
	}
	errNoRecord = badUpstream("compaction_failed",
		"The model wrote no usable summary of the history, and there is nothing to quote instead. Nothing was lost: try again.")
	errEncoding = badRequest("invalid_encoding",
		"The body is not valid in its Content-Encoding, or has bytes after its end. Encode it once, as a whole.")
	errOverloaded = apiError{
		Status: 503, Type: typeLimit, Code: "overloaded", Retry: 1, Close: true,
		Message: "The proxy holds as many request bytes as limits.bytes_in_flight allows. Try again shortly.",
	}
	errShare = apiError{
		Status: 503, Type: typeLimit, Code: codeShare, Retry: 1, Close: true,
		Message: "The requests of this tenant (of this client, if no tenants are configured) hold their share of the memory for request " +
			"bodies. Try again when some of them have ended.",
	}
	errUnauthorized = apiError{
		Status: 401, Type: typeInvalid, Code: "invalid_api_key",
		Message: "The API key is missing, or does not belong to a tenant. Send a tenant's key as 'Authorization: Bearer KEY' or 'x-api-key: KEY'.",
	}
	errUnknownRun = apiError{
		Status: 404, Type: typeInvalid, Code: "unknown_run",
		Message: "The run of an agent that this base URL belongs to has ended, or is not one of this machine. Start the agent with 'dewpoint run' " +
			"again, or use the base URL without /run/ID.",
	}
	errUnpaid = apiError{
		Status: 403, Type: typeInvalid, Code: "no_upstream_key",
		Message: "This proxy has no key for the provider of this request, and the key that was sent is only valid here. The operator of this proxy " +
			"can set api_key for the provider below upstream.",
	}
	errRefused = apiError{
		Status: 503, Type: typeServer, Code: "tenant_refused",
		Message: "The settings of this key's tenant have an error, so its requests are not served. The operator of this proxy must correct the " +
			"tenant's file: 'dewpoint check-config' and the proxy's log say what is wrong.",
	}
	errUpgrade = closing(426, "websocket_unsupported", "WebSocket connections are not supported here. Send the request by HTTP POST.")
	// errTooLongToRead refuses an answer that may hold calls that the client must not see.
	errTooLongToRead = badUpstream("upstream_answer_too_long", fmt.Sprintf("The upstream's answer may call tools of the proxy's own, and is "+
		"longer than %d MiB, or than limits.bytes_in_flight has room for. Ask for a stream, or send X-Dewpoint-Condense: off.", maxReadAnswer>>20))
	errStopping = apiError{
		Status: 503, Type: typeServer, Code: "shutting_down", Retry: 1, Close: true,
		Message: "The proxy is shutting down. Try again shortly.",
	}
	// errLoop refuses a request that this proxy has forwarded before.
	errLoop = apiError{
		Status: http.StatusLoopDetected, Type: typeServer, Code: "request_loop",
		Message: fmt.Sprintf("The request has passed this proxy before, or more than %d proxies: the upstream leads back here. Set "+
			"upstream.base_url, that of the tenant or of the llms entry to the model's server.", maxMarks),
	}
	errInternal = apiError{Status: 500, Type: typeServer, Code: codeInternal, Message: "The proxy failed. Its log has the cause."}
)

func badRequest(code, message string) apiError {
	return apiError{Status: 400, Type: typeInvalid, Code: code, Message: message}
}

// closing refuses a request whose end may not have been read, so that no other one can follow on its connection.
func closing(status int, code, message string) apiError {
	return apiError{Status: status, Type: typeInvalid, Code: code, Message: message, Close: true}
}

func badUpstream(code, message string) apiError {
	return apiError{Status: 502, Type: typeServer, Code: code, Message: message}
}

// errTooLarge refuses a body above a limit, which is raised by a setting.
func errTooLarge(limit int64, setting string) apiError {
	return closing(413, "request_too_large", fmt.Sprintf("The request body is larger than %d bytes. Send less, or raise %s.", limit, setting))
}

// write makes the error the response.
func (e apiError) write(ctx *fasthttp.RequestCtx, in dialect.Dialect) {
	id := string(ctx.Response.Header.Peek(requestIDHeader))
	ctx.Response.Reset()
	ctx.Response.Header.Set(requestIDHeader, id)
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

// refuse ends the request with an error. If its client has left, that is only counted.
func (r *request) refuse(ctx *fasthttp.RequestCtx, err error) {
	if e, ok := r.endWithError(err); ok {
		e.write(ctx, r.params.clientDialect)
		r.share(&ctx.Response.Header)
		return
	}
	ctx.SetConnectionClose()
	ctx.SetStatusCode(statusClientGone)
}

// endWithError ends the request with an error, and returns the answer for its client. ok is false if the client has left.
func (r *request) endWithError(err error) (e apiError, ok bool) {
	if errors.Is(err, errClientGone) {
		r.recorder.end(statusClientGone, CodeClientGone)
		return e, false
	}
	if !errors.As(err, &e) {
		r.server.o.Log.Error("a request failed for a reason that the proxy does not know, and its client was answered with status 500", zap.Error(err))
		e = errInternal
	}
	r.recorder.end(e.Status, e.Code)
	return e, true
}

// endWithEvent is endWithError for a stream that has begun: it returns an error event, nil if the client has left.
func (r *request) endWithEvent(err error) []byte {
	if e, ok := r.endWithError(err); ok {
		return r.params.clientDialect.Event(e.body(r.params.clientDialect))
	}
	return nil
}

// guard runs a step and recovers from a panic in it, which it logs and counts. It reports whether the step returned.
func (o *Options) guard(step func()) (returned bool) {
	defer func() {
		if v := recover(); v != nil {
			o.logPanic(v)
		}
	}()
	step()
	return true
}

func (o *Options) logPanic(v any) {
	o.Log.Error("panic", zap.Any("value", v), zap.ByteString("stack", debug.Stack()))
	o.Faults.Panicked()
}
