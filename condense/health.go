package condense

import (
	"context"
	"errors"
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

// ready reports whether a condensation may be made now. What is hard or was asked for is always tried, and a request that waits for no
// model does not depend on its health.
func (l *LLM) ready(in Input, need Need) bool {
	return need.tried() || need.AtOnce || !l.cooling(in)
}

// cooling reports whether the model failed a short while ago and is left alone.
func (l *LLM) cooling(in Input) bool { return l.s.Health != nil && !l.s.Health.Ready(l.attempt(in)) }

func (l *LLM) attempt(in Input) Attempt {
	return Attempt{Endpoint: l.endpoint(in), Model: l.model(in), Thread: in.Thread.Name, Configured: l.s.Model != ""}
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
	if call, ok := errors.AsType[*CallError](err); ok {
		return string(call.Kind)
	}
	if bad, ok := errors.AsType[*SummaryError](err); ok {
		return string(bad.Kind)
	}
	switch {
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
func (l *LLM) watched(in Input, need Need, call func(healthy bool) error) error {
	if l.s.Health == nil {
		return call(true)
	}
	a := l.attempt(in)
	healthy := l.s.Health.Begin(a)
	if !healthy && !need.tried() {
		return ErrCooling
	}
	err := errPanicked
	defer func() { l.s.Health.End(a, err) }()
	err = call(healthy)
	return err
}
