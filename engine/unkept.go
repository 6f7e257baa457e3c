package engine

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// For how long no model is called after the store failed to keep a condensation. It doubles each time, up to the longest.
const (
	firstPause   = 30 * time.Second
	longestPause = 10 * time.Minute
)

// errUnkept is the reason why no model is called: its summary would probably be lost, and the next request would pay again.
var errUnkept = fmt.Errorf("no model is called, since the store did not keep a recent condensation: %w", session.ErrUnavailable)

// unkept pauses calls of models while the store keeps no condensations, as when its disk is full but can still be read.
type unkept struct {
	mu    sync.Mutex
	pause time.Duration // 0: it keeps them
	until time.Time
}

// pauses reports whether models are not called. Excerpts are still tried: they cost nothing, and end the pause if they are kept.
func (u *unkept) pauses(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.pause > 0 && now.Before(u.until)
}

// mayAsk reports whether a model may be called. After a pause it admits one call, and begins a longer pause.
func (u *unkept) mayAsk(now time.Time) bool {
	if u.pauses(now) {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pause = min(2*u.pause, longestPause)
	u.until = now.Add(u.pause)
	return true
}

// note records the outcome of writing a condensation.
func (u *unkept) note(err error, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case err == nil:
		u.pause = 0
	case u.pause == 0 && errors.Is(err, session.ErrUnavailable):
		u.pause, u.until = firstPause, now.Add(firstPause)
	}
}
