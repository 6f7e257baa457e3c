// Package summariser calls the models that write summaries.
package summariser

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
)

const (
	DefaultTimeout = 30 * time.Second
	maxResponse    = 16 << 20 // bytes of a response's body
)

// The slowest acceptable server. The limit on the duration of a call follows from the sizes of its prompt and its answer.
const (
	slowestReading = 4 << 10 // bytes of prompt per second, before the first sign of life
	slowestWriting = 20      // tokens per second
)

// Caller is a condense.Summariser that calls a model server, with Chat Completions or the API that the endpoint names. It streams
// answers if the server supports that. Safe for concurrent use.
type Caller struct {
	Client      *http.Client  // nil: http.DefaultClient
	Timeout     time.Duration // longest silence of the server; 0: DefaultTimeout
	Temperature *float32      // nil: not sent
	Effort      string        // of reasoning, as the server calls it; empty: the least that the model is known to offer
	Lacks       *Lacks        // in which form servers accept calls; nil: found out in each call
}

var _ condense.Summariser = Caller{}

// Summarise implements condense.Summariser. If the server refuses a parameter of the call, or the role of its instructions, Summarise repeats
// the call as the refusal says, up to maxAdaptations times, and remembers that once the server accepts it. A ready-made body is sent unchanged.
func (c Caller) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	var before lacks
	if r.Body == nil {
		before = c.Lacks.of(r)
	}
	for known, tries := before, 0; ; tries++ {
		reply, body, err := c.attempt(ctx, r, known)
		final := err == nil || errors.Is(err, errSilent) || errors.Is(err, errNotStreamed)
		if r.Body == nil && known.learn(err, r, body) && !final && tries < maxAdaptations {
			continue
		}
		if final && known != before && c.Lacks != nil {
			c.Lacks.known.Add(modelOf(r), lacksEntry{known, time.Now()})
		}
		if err != nil && !errors.Is(err, errNotStreamed) {
			failed := callError(ctx, err, r.Endpoint.APIKey)
			if errors.Is(err, errBroken) || reply != (condense.Reply{}) {
				failed.Begun = &reply
			}
			return condense.Reply{}, failed
		}
		return reply, nil
	}
}

// attempt makes one call, and returns its body.
func (c Caller) attempt(ctx context.Context, r condense.Request, l lacks) (reply condense.Reply, body []byte, err error) {
	if body = r.Body; body == nil {
		if body, err = l.body(c, r); err != nil {
			return reply, nil, err // callError wraps it
		}
	}
	answer, err := c.postInTime(ctx, r, body, !l.omits("stream"))
	return replyTo(&r, &answer), body, err
}

// Reasons for cancelling a call for which the caller was still waiting.
var (
	errSilent  = errors.New("the server did not answer")
	errStalled = errors.New("the server stopped answering")
	errSlow    = errors.New("the server took too long")
)

// postInTime sends a body and reads the answer. It cancels the call if the server takes too long or, for a stream, falls silent.
func (c Caller) postInTime(ctx context.Context, r condense.Request, body []byte, streamed bool) (dialect.Answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := cmp.Or(c.Timeout, DefaultTimeout)
	reading := silent + time.Duration(r.Size())*time.Second/slowestReading // until the first sign of life
	writing := time.Duration(r.MaxOutput) * time.Second / slowestWriting
	total := time.AfterFunc(reading+writing, func() { cancel(errSlow) })
	defer total.Stop()
	began := false
	progress := func() {}
	if streamed {
		silence := time.AfterFunc(reading, func() { cancel(errSilent) })
		defer silence.Stop()
		progress = func() {
			if silence.Reset(silent) {
				began = true
			}
		}
	}
	a, err := c.newSender(r, streamed, progress).post(ctx, body, streamed)
	cause := context.Cause(ctx)
	switch {
	case err == nil:
	case errors.Is(cause, errSilent) && began:
		err = errStalled
	case errors.Is(cause, errSilent), errors.Is(cause, errSlow):
		err = cause
	}
	return a, err
}

// callFailures are the kinds of failure by the errors that are safe to show.
var callFailures = [...]struct {
	err  error
	kind condense.Failure
}{
	{errSilent, condense.FailureTimeout},
	{errStalled, condense.FailureTimeout},
	{errSlow, condense.FailureTimeout},
	{errResponseSize, condense.FailureMalformed},
	{errBroken, condense.FailureUnreachable},
}

// callError returns err as a *condense.CallError without any text of the server's, which might quote the key.
func callError(ctx context.Context, err error, key string) *condense.CallError {
	if ctx.Err() != nil {
		return &condense.CallError{Kind: contextFailure(ctx), Err: ctx.Err()}
	}
	if e, ok := errors.AsType[*refused](err); ok {
		kind := condense.FailureServer
		if e.status != 0 {
			kind = failure(e.status)
		}
		return &condense.CallError{Kind: kind, Status: e.status, Code: safeCode(e.code, key), Window: e.over.Limit, Prompt: e.over.Prompt}
	}
	for _, f := range callFailures {
		if errors.Is(err, f.err) {
			return &condense.CallError{Kind: f.kind, Err: f.err}
		}
	}
	kind := condense.FailureMalformed
	if e, ok := errors.AsType[*url.Error](err); ok {
		kind, err = condense.FailureUnreachable, e.Err
		if e.Timeout() {
			kind = condense.FailureTimeout
		}
	}
	if key != "" && err != nil && strings.Contains(err.Error(), key) {
		err = nil
	}
	return &condense.CallError{Kind: kind, Err: err}
}

// contextFailure returns the failure for a context that ended. Neither of the two is the server's fault.
func contextFailure(ctx context.Context) condense.Failure {
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

// safeCode returns an error code if it looks like one and does not contain the key, and an empty string otherwise.
func safeCode(code, key string) string {
	if len(code) > 64 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || key != "" && strings.Contains(code, key) {
		return ""
	}
	return code
}
