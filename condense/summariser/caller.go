// Package summariser calls the models that write summaries.
package summariser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// Defaults of Caller.
const (
	DefaultTimeout     = 30 * time.Second
	DefaultMaxResponse = 16 << 20
)

// How slow a server may be before a call is given up: the time for the whole follows from what it has to read and to write.
const (
	slowestReading = 4 << 10 // bytes of prompt a second, before the first sign of life
	slowestWriting = 20      // tokens a second
)

// Caller is a condense.Summariser that speaks Chat Completions, or the Messages or the Responses API where the endpoint says so. Answers
// are streamed where the server does that. It may be used concurrently.
type Caller struct {
	Client      *http.Client  // nil: http.DefaultClient
	Timeout     time.Duration // longest silence of the server; 0: DefaultTimeout
	Temperature *float32      // nil: not sent
	MaxResponse int64         // bytes of a response's body; 0: DefaultMaxResponse
	Lacks       *Lacks        // what servers do not take; nil: it is found out with each call
}

var _ condense.Summariser = Caller{}

// Summarise implements Summariser. What the server refuses of the form of the call is left out, and it is asked again;
// that is remembered once the server no longer refuses. A body that is there already, and a call of the Messages API, stay as they are.
func (c Caller) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	var before lacks
	learns := r.Body == nil && r.Endpoint.Way.API != condense.APIMessages
	if learns {
		before = c.Lacks.of(r)
	}
	for known := before; ; {
		reply, err := c.attempt(ctx, r, known)
		ended := err == nil || errors.Is(err, errSilent) || errors.Is(err, errWhole)
		if learns && known.learn(err) && !ended {
			continue
		}
		if ended && known != before {
			c.Lacks.remember(r, known)
		}
		if err != nil && !errors.Is(err, errWhole) {
			return condense.Reply{}, callError(ctx, err, r.Endpoint.APIKey)
		}
		return reply, nil
	}
}

// answer is a protocol's answer, while it comes.
type answer interface {
	// request is the body of a call, in the form that the server takes.
	request(c Caller, r condense.Request, l lacks) any
	// take adds what an event of a stream tells, and reports whether it was the last one.
	take(data []byte) (last bool, err error)
	// whole takes an answer that is no stream.
	whole(body []byte) error
	// ended reports whether it is an answer although its last event is missing.
	ended() bool
	reply(r condense.Request) condense.Reply
}

// attempt makes one call.
func (c Caller) attempt(ctx context.Context, r condense.Request, l lacks) (condense.Reply, error) {
	var got answer
	switch r.Endpoint.Way.API {
	case condense.APIMessages:
		got = &message{}
	case condense.APIResponses:
		got, l.stream = &response{}, false
	default:
		got = &completion{}
	}
	body := r.Body
	if body == nil {
		var err error
		if body, err = json.Marshal(got.request(c, r, l)); err != nil {
			return condense.Reply{}, err //nolint:wrapcheck // callError words it
		}
	}
	err := c.watched(ctx, r, !l.stream, func(ctx context.Context, w *wire) error { return w.post(ctx, body, got) })
	if errors.Is(err, errEnded) && got.ended() {
		err = nil
	}
	return got.reply(r), err
}

// Why a call was given up that its caller still waited for.
var (
	errSilent = errors.New("the server did not answer")
	errStalls = errors.New("the server fell silent")
	errSlow   = errors.New("the server took too long")
)

// watched makes a call for as long as the server shows signs of life, and is not slow beyond measure.
func (c Caller) watched(ctx context.Context, r condense.Request, streamed bool, call func(context.Context, *wire) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	reading, writing := c.patience(r)
	whole := time.AfterFunc(reading+writing, func() { cancel(errSlow) })
	defer whole.Stop()
	began, alive := false, func() {}
	if streamed {
		silent := time.AfterFunc(reading, func() { cancel(errSilent) })
		defer silent.Stop()
		alive = func() { began = silent.Reset(c.silence()) || began }
	}
	w := c.wire(r.Endpoint, alive)
	w.streamed = streamed
	err := call(ctx, w)
	switch cause := context.Cause(ctx); {
	case err == nil:
	case errors.Is(cause, errSilent) && began:
		err = errStalls
	case errors.Is(cause, errSilent), errors.Is(cause, errSlow):
		err = cause
	}
	return err
}

func (c Caller) silence() time.Duration { return cmp.Or(c.Timeout, DefaultTimeout) }

// patience is how long a server may take before its first sign of life, and after that.
func (c Caller) patience(r condense.Request) (reading, writing time.Duration) {
	reading = c.silence() + time.Duration(r.Size())*time.Second/slowestReading
	return reading, time.Duration(r.MaxOutput) * time.Second / slowestWriting
}

// callError says what went wrong in words of our own, since a server may well quote the key in its.
func callError(ctx context.Context, err error, key string) error {
	if ctx.Err() != nil {
		return &condense.CallError{Kind: gaveUp(ctx), Err: ctx.Err()}
	}
	if e, ok := errors.AsType[*refused](err); ok {
		if e.status == 0 {
			return &condense.CallError{Kind: condense.FailureServer, Code: plain(e.code, key)}
		}
		return &condense.CallError{Kind: failure(e.status), Status: e.status, Code: plain(e.code, key)}
	}
	for cause, kind := range map[error]condense.Failure{
		errSilent: condense.FailureTimeout, errStalls: condense.FailureTimeout, errSlow: condense.FailureTimeout,
		errResponseSize: condense.FailureMalformed, errBroken: condense.FailureUnreachable,
	} {
		if errors.Is(err, cause) {
			return &condense.CallError{Kind: kind, Err: cause}
		}
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		if e.Timeout() {
			return &condense.CallError{Kind: condense.FailureTimeout, Err: hide(e.Err, key)}
		}
		return &condense.CallError{Kind: condense.FailureUnreachable, Err: hide(e.Err, key)}
	}
	return &condense.CallError{Kind: condense.FailureMalformed, Err: hide(err, key)}
}

// gaveUp tells why the caller did: its time was over, or what it was for has ended. Neither is the server's failure.
func gaveUp(ctx context.Context) condense.Failure {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return condense.FailureDeadline
	}
	return condense.FailureCanceled
}

func failure(status int) condense.Failure {
	switch {
	case status == http.StatusTooManyRequests:
		return condense.FailureRateLimited
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return condense.FailureDenied
	case status >= http.StatusInternalServerError:
		return condense.FailureServer
	case status >= http.StatusBadRequest:
		return condense.FailureRejected
	}
	return condense.FailureMalformed
}

// plain is a code if it is a plain word and does not hold the key.
func plain(c, key string) string {
	if len(c) > 64 || strings.Trim(c, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || key != "" && strings.Contains(c, key) {
		return ""
	}
	return c
}

// hide drops an error whose text holds the key.
func hide(err error, key string) error {
	if err == nil || key != "" && strings.Contains(err.Error(), key) {
		return nil
	}
	return err
}
