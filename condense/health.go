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
	Thread   string // thread whose history it is about

	Configured bool // the model is a configured one, not that of the client's request
}

// Health tracks failing models, which soft condensations then avoid. It must be safe for concurrent use.
type Health interface {
	// Ready reports whether the model may be called now.
	Ready(a Attempt) bool
	// Missing reports whether the model or its credential was recently found not to exist.
	Missing(a Attempt) bool
	// Begin is like Ready, but for a caller that calls the model next and reports the outcome by End. Of a model that
	// failed, only one attempt is admitted at a time.
	Begin(a Attempt) bool
	// Window returns the context window by which the model's server recently refused a prompt, in tokens, or 0.
	Window(a Attempt) int
	// LearnWindow reports such a window.
	LearnWindow(a Attempt, tokens int)
	// End reports the outcome of an attempt, nil for success. A caller that makes the call although Begin returned false
	// must report it, too.
	End(a Attempt, err error)
}

// ErrCooling is the reason why a soft condensation did not call a summariser that failed recently.
var ErrCooling = errors.New("summariser is cooling down")

// isCooling reports whether the model failed recently and must not be called yet.
func (j *llmJob) isCooling() bool { return j.s.Health != nil && !j.s.Health.Ready(j.attemptFor(j.in)) }

// modelMissing reports whether the configured summary model does not exist, as far as is known.
func (j *llmJob) modelMissing() bool {
	return j.form != nil && j.s.Health != nil && j.isConfigured(j.in) && j.s.Health.Missing(j.attemptFor(j.in))
}

func (l *LLM) attemptFor(in Input) Attempt {
	return Attempt{Endpoint: l.endpoint(in), Model: l.model(in), Thread: in.Thread.Name, Configured: l.s.Model != ""}
}

// fitted returns the condenser with the window that the model's server reported, if that is smaller than the one known. A summary
// then takes at most a quarter of it.
func (l *LLM) fitted(in Input) *LLM {
	if l.s.Health == nil {
		return l
	}
	window := l.s.Health.Window(l.attemptFor(in))
	if window == 0 || window >= l.window(in) {
		return l
	}
	smaller := *l
	smaller.s.Window = window
	smaller.s.MaxOutput = min(l.s.MaxOutput, window/4)
	return &smaller
}

// ErrMissing is the reason why the request's own model is used instead of the configured one.
var ErrMissing = errors.New("the configured model or its key does not exist")

// errUncut is the reason why excerpts are not used.
var errUncut = errors.New("the view does not shrink enough")

// AsConfigured reports whether there is no summary because the configuration wants none, rather than by a failure.
func AsConfigured(err error) bool { return errors.Is(err, ErrAtOnce) || errors.Is(err, ErrUnearned) }

// Cause returns the reason of a failed condensation as one word without confidential content, or "" for nil.
func Cause(err error) string {
	if call, ok := errors.AsType[*CallError](err); ok {
		return string(call.Kind)
	}
	if bad, ok := errors.AsType[*SummaryError](err); ok {
		return string(bad.Kind)
	}
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrAtOnce):
		return "at_once"
	case errors.Is(err, ErrUnearned):
		return "unearned"
	case errors.Is(err, ErrCooling):
		return "cooling"
	case errors.Is(err, ErrMissing):
		return "missing"
	case errors.Is(err, errUncut):
		return string(ObstacleUncut)
	case errors.Is(err, context.Canceled):
		return string(FailureCanceled)
	case errors.Is(err, context.DeadlineExceeded):
		return string(FailureDeadline)
	}
	return "internal"
}

// withHealth runs call and reports the outcome to the model's health. healthy is false if the model failed recently.
func (j *llmJob) withHealth(call func(healthy bool) (session.Condensation, error)) (c session.Condensation, err error) {
	if j.s.Health == nil {
		return call(true)
	}
	a := j.attemptFor(j.in)
	healthy := j.s.Health.Begin(a)
	if !healthy && !j.due.Need.mayTry() {
		return c, ErrCooling
	}
	err = errors.New("summary panicked") // the outcome if call does not return
	defer func() { j.s.Health.End(a, err) }()
	c, err = call(healthy)
	return c, err
}

// askOnce makes a single call of the model. write makes the request, and read the condensation.
func (j *llmJob) askOnce(
	ctx context.Context, write func() (Request, error), read func(Reply) (session.Condensation, error),
) (session.Condensation, error) {
	return j.withHealth(func(bool) (c session.Condensation, err error) {
		r, err := inPool(ctx, &j.in, write)
		if err != nil {
			return c, err
		}
		reply, err := j.call(ctx, r)
		if err != nil {
			return c, err
		}
		return inPool(ctx, &j.in, func() (session.Condensation, error) { return read(reply) })
	})
}
