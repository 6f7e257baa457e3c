package boltstore

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// holders checks that the store has the content which other threads' entries hold. It reports each thread once.
type holders struct {
	tx     *bolt.Tx
	report func(error)
	thread session.Thread // the one whose entries are being checked
	gone   bool           // its record is lost, so nothing reads them
	lost   int            // of its messages, those whose content cannot be read
	cause  error          // why the first of them cannot
}

var errMissing = errors.New("missing")

// check checks events of a thread. All entries of a thread must come one after the other.
func (h *holders) check(id session.ThreadID, events []session.Event) {
	if id != h.thread.ID {
		h.finish()
		rec, err := h.record(id)
		*h = holders{tx: h.tx, report: h.report, thread: rec.thread, gone: err != nil}
		h.thread.ID = id
		for _, holder := range h.thread.Shares { // the names are encrypted if the content is
			h.cause = cmp.Or(h.cause, h.checkHolder(holder))
		}
	}
	for _, e := range events {
		if e.Held.Thread == "" || h.gone {
			continue
		}
		if err := h.checkHeld(e); err != nil {
			h.lost++
			h.cause = cmp.Or(h.cause, err)
		}
	}
}

// finish reports the thread whose entries were checked last, if content of its messages is lost. A thread that is kept only because
// another one needs it may lose content.
func (h *holders) finish() {
	if h.cause == nil || errors.Is(h.cause, errMissing) && h.needed() {
		return
	}
	messages := "messages"
	if h.lost > 0 {
		messages = fmt.Sprintf("%d of the messages", h.lost)
	}
	h.report(fmt.Errorf("the content of %s of thread %q cannot be shown or condensed again: %w; the client's next thread logs it again",
		messages, h.thread.ID, h.cause))
}

// record reads a thread's record. Its error says what is wrong with it.
func (h *holders) record(id session.ThreadID) (record, error) {
	stored := h.tx.Bucket(threads.name()).Get([]byte(id))
	if stored == nil {
		return record{}, errMissing
	}
	rec, err := parseRecord(stored)
	if err != nil {
		return rec, errors.New("damaged")
	}
	return rec, nil
}

// checkHolder checks a thread that holds content of h's thread.
func (h *holders) checkHolder(id session.ThreadID) error {
	rec, err := h.record(id)
	if err == nil && rec.thread.Session != h.thread.Session {
		err = errors.New("of another session")
	}
	if err != nil {
		return fmt.Errorf("thread %q, which holds it, is %w", id, err)
	}
	return nil
}

// checkHeld checks the entry that holds an event's content.
func (h *holders) checkHeld(e session.Event) error {
	if err := h.checkHolder(e.Held.Thread); err != nil {
		return err
	}
	err := errMissing
	if stored := h.tx.Bucket(events.name()).Get([]byte(events.entry(e.Held.Thread, e.Held.Seq)[1:])); stored != nil {
		held, failed := codec.Content{}.ParseEvents(e.Held.Thread, stored, e.Held.Seq)
		switch {
		case failed != nil:
			err = errors.New("damaged")
		case held[0].Digest != e.Digest:
			err = errors.New("of another message")
		case held[0].Encrypted:
			err = errors.New("encrypted, but its name is not")
		case len(held[0].Payload) == 0:
			err = errors.New("empty")
		default:
			return nil
		}
	}
	return fmt.Errorf("entry %d of thread %q, which holds it, is %w", e.Held.Seq, e.Held.Thread, err)
}

// needed reports whether another thread of the session needs h's thread.
func (h *holders) needed() bool {
	ses, _ := codec.ParseSession(h.tx.Bucket(sessions.name()).Get([]byte(h.thread.Session))) // without threads if it is lost
	ids, prefix := ses.Threads, []byte(unlisted.prefix(string(h.thread.Session))[1:])
	cursor := h.tx.Bucket(unlisted.name()).Cursor()
	for key, value := cursor.Seek(prefix); bytes.HasPrefix(key, prefix); key, value = cursor.Next() {
		ids = append(ids, session.ThreadID(value))
	}
	return slices.ContainsFunc(ids, func(id session.ThreadID) bool {
		rec, err := h.record(id)
		needs, _ := rec.needs()
		return err == nil && slices.Contains(needs, h.thread.ID)
	})
}
