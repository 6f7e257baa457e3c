package boltstore

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// record is a thread as it is stored: its condensations stay encoded, because an append need not look at them.
type record struct {
	written time.Time
	thread  session.Thread
	list    []byte
}

func (r record) encode() []byte {
	thread := codec.Thread(r.thread)
	b := make([]byte, 0, 8+binary.MaxVarintLen32+len(thread)+len(r.list))
	b = binary.BigEndian.AppendUint64(b, uint64(r.written.UnixNano()))
	b = binary.AppendUvarint(b, uint64(len(thread)))
	return append(append(b, thread...), r.list...)
}

// parseRecord aliases b in the list.
func parseRecord(b []byte) (record, error) {
	if len(b) < 9 {
		return record{}, codec.ErrCorrupt
	}
	r := record{written: time.Unix(0, int64(binary.BigEndian.Uint64(b)))} //nolint:gosec // a time
	n, size := binary.Uvarint(b[8:])
	if size <= 0 || n > uint64(len(b)-8-size) { //nolint:gosec // a length
		return r, codec.ErrCorrupt
	}
	body := b[8+size:]
	var err error
	r.thread, err = codec.ParseThread(body[:n])
	r.list = body[n:]
	return r, err
}

// thread reads a thread's record, or gives ErrNotFound.
func (r *reader) thread(id session.ThreadID) (record, error) {
	stored := r.get(threads.key(string(id)))
	if stored == nil {
		return record{}, session.ErrNotFound
	}
	rec, err := parseRecord(stored)
	if err != nil {
		return rec, fmt.Errorf("thread record: %w", err)
	}
	return rec, nil
}

// parseThread gives the whole thread.
func parseThread(b []byte) (session.Thread, error) {
	r, err := parseRecord(b)
	if err == nil {
		err = codec.SetList(&r.thread, r.list)
	}
	if err != nil {
		return session.Thread{}, fmt.Errorf("thread record: %w", err)
	}
	return r.thread, nil
}
