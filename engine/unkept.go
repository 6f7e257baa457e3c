package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// unkeptPause is how long no model is called after the store did not keep a condensation, as when its disk is full but can still be read.
// Excerpts are still tried: they cost nothing, and end the pause if they are kept.
const unkeptPause = 5 * time.Minute

// errUnkept is the reason why no model is called: its summary would probably be lost, and the next request would pay again.
var errUnkept = fmt.Errorf("no model is called, since the store did not keep a recent condensation: %w", session.ErrUnavailable)

// pauses reports whether models are not called for now.
func (e *Engine) pauses() bool { return e.o.Now().UnixNano() < e.pausedUntil.Load() }

// mayAsk reports whether a model may be called. After a pause it admits one call, and another pause begins.
func (e *Engine) mayAsk() bool {
	until := e.pausedUntil.Load()
	return until == 0 || !e.pauses() && e.pausedUntil.CompareAndSwap(until, e.o.Now().Add(unkeptPause).UnixNano())
}

// noteWrite records the outcome of writing a condensation. Failures during a pause do not extend it.
func (e *Engine) noteWrite(err error) {
	switch {
	case err == nil:
		e.pausedUntil.Store(0)
	case errors.Is(err, session.ErrUnavailable) && !e.pauses():
		e.pausedUntil.Store(e.o.Now().Add(unkeptPause).UnixNano())
	}
}
