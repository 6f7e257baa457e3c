package codec

import (
	"errors"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

const longestID = 1024 // bytes; part of the keys

// CheckIDs refuses a record that no key could be made for.
func CheckIDs(thread session.ThreadID, ses session.SessionID) error {
	switch {
	case thread == "":
		return errors.New("no thread id")
	case len(thread) > longestID:
		return fmt.Errorf("thread id of %d bytes: at most %d", len(thread), longestID)
	case len(ses) > longestID:
		return fmt.Errorf("session id of %d bytes: at most %d", len(ses), longestID)
	}
	return nil
}

// Begins reports whether b may begin its thread, which the store does not know.
func Begins(b session.Batch) bool { return b.At == 0 || b.At == b.Thread.ForkAt }

// Last is what b's traces point to.
func Last(b session.Batch) session.Place {
	if n := len(b.Places); n > 0 {
		return b.Places[n-1].Place
	}
	return session.Place{Thread: b.Thread.ID, Session: b.Thread.Session, Pos: b.Thread.Len}
}
