package codec

import (
	"errors"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

const maxID = 1024 // bytes; ids become parts of keys

// CheckIDs returns an error if the ids cannot become parts of keys.
func CheckIDs(thread session.ThreadID, ses session.SessionID) error {
	switch {
	case thread == "":
		return errors.New("no thread id")
	case len(thread) > maxID:
		return fmt.Errorf("thread id of %d bytes: at most %d", len(thread), maxID)
	case len(ses) > maxID:
		return fmt.Errorf("session id of %d bytes: at most %d", len(ses), maxID)
	}
	return nil
}

// Begins reports whether b may begin its thread if the store does not know it.
func Begins(b session.Batch) bool { return b.At == 0 || b.At == b.Thread.ForkAt }

// Last returns the place that b's traces point to.
func Last(b session.Batch) session.Place {
	if n := len(b.Places); n > 0 {
		return b.Places[n-1].Place
	}
	return session.Place{Thread: b.Thread.ID, Session: b.Thread.Session, Pos: b.Thread.Len}
}
