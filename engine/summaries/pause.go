package summaries

import (
	"errors"
	"fmt"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// pause is how long no model is called after the store did not keep a condensation, as when its disk is full but can still be read. Excerpts
// are still tried: they cost nothing, and end the pause if they are kept.
const pause = 5 * time.Minute

// ErrUnkept is the reason why no model is called: its summary would probably be lost, and the next request would pay again.
var ErrUnkept = fmt.Errorf("no model is called, since the store did not keep a recent condensation: %w", session.ErrUnavailable)

// Paused reports whether models are not called for now.
func (s *Service[R]) Paused() bool { return s.now().UnixNano() < s.pausedUntil.Load() }

// MayAsk reports whether a model may be called. After a pause it admits one call, and another pause begins.
func (s *Service[R]) MayAsk() bool {
	until := s.pausedUntil.Load()
	return until == 0 || !s.Paused() && s.pausedUntil.CompareAndSwap(until, s.now().Add(pause).UnixNano())
}

// NoteWrite records the outcome of writing a condensation. Failures during a pause do not extend it.
func (s *Service[R]) NoteWrite(err error) {
	switch {
	case err == nil:
		s.pausedUntil.Store(0)
	case errors.Is(err, session.ErrUnavailable) && !s.Paused():
		s.pausedUntil.Store(s.now().Add(pause).UnixNano())
	}
}
