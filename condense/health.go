package condense

import (
	"context"
	"errors"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Attempt is a call of a model that a condensation is about to make.
type Attempt struct {
	Endpoint Endpoint
	Model    string
	Thread   string // whose history it is about

	Configured bool // the model is, and not that of a client's request
}

// Health knows which models fail, so that soft condensations leave them alone for a while. It may be used concurrently.
type Health interface {
	// Ready reports whether the model may be called now.
	Ready(a Attempt) bool
	// Missing reports whether the model or its credential was found not to be there, a short while ago.
	Missing(a Attempt) bool
	// Begin is Ready for a caller who then calls the model and says what came of it by End. Of a model that failed, only one
	// attempt at a time is let through.
	Begin(a Attempt) bool
	// End says what came of an attempt, nil for success. It is called after Begin, whatever that reported.
	End(a Attempt, err error)
}

// ErrCooling is why a soft condensation did without the summariser: it failed a short while ago.
var ErrCooling = errors.New("summariser is cooling down")

// cooling reports whether the model failed a short while ago and is left alone.
func (j *llmJob) cooling() bool { return j.s.Health != nil && !j.s.Health.Ready(j.attempted()) }

// missing reports whether the configured model of summaries is known not to be there, and the request's own is to be asked.
func (j *llmJob) missing() bool {
	return j.form != nil && j.s.Health != nil && j.configured(j.in) && j.s.Health.Missing(j.attempted())
}

func (j *llmJob) attempted() Attempt {
	return Attempt{Endpoint: j.endpoint(j.in), Model: j.model(j.in), Thread: j.in.Thread.Name, Configured: j.s.Model != ""}
}

// notThere reports whether a call failed because the model or its credential is not there: trying again does not help.
func notThere(err error) bool {
	call, ok := errors.AsType[*CallError](err)
	return ok && call.Missing()
}

// ErrMissing is why the request's own model is used instead of the configured one.
var ErrMissing = errors.New("the configured model or its key is not there")

// Cause is why a condensation failed, in a word that tells nothing of the conversation or the credential; empty if it did not.
func Cause(err error) string {
	if err == nil {
		return ""
	}
	call, _ := errors.AsType[*CallError](err)
	bad, _ := errors.AsType[*SummaryError](err)
	switch {
	case call != nil:
		return string(call.Kind)
	case bad != nil:
		return string(bad.Kind)
	case errors.Is(err, ErrAtOnce):
		return "at_once"
	case errors.Is(err, ErrCooling):
		return "cooling"
	case errors.Is(err, ErrMissing):
		return "missing"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return string(FailureCanceled)
	}
	return "internal"
}

// errPanicked is what came of an attempt that did not return.
var errPanicked = errors.New("summary panicked")

// watched runs call, which calls the model, and tells the model's health what came of it.
func (j *llmJob) watched(call func(healthy bool) (session.Condensation, error)) (c session.Condensation, err error) {
	if j.s.Health == nil {
		return call(true)
	}
	a := j.attempted()
	healthy := j.s.Health.Begin(a)
	if !healthy && !j.due.Need.tried() {
		return c, ErrCooling
	}
	err = errPanicked
	defer func() { j.s.Health.End(a, err) }()
	c, err = call(healthy)
	return c, err
}

// asked asks the model once, under the eyes of its health.
func (j *llmJob) asked(
	ctx context.Context, write func() (Request, error), read func(Reply) (session.Condensation, error),
) (session.Condensation, error) {
	return j.watched(func(bool) (c session.Condensation, err error) {
		var r Request
		err = j.in.work(ctx, func() (err error) {
			r, err = write()
			return err
		})
		if err != nil {
			return c, err
		}
		reply, err := j.call(ctx, r)
		if err != nil {
			return c, err
		}
		err = j.in.work(ctx, func() (err error) {
			c, err = read(reply)
			return err
		})
		return c, err
	})
}
