package codec

import (
	"encoding/binary"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// writer appends fields to b.
type writer struct{ b []byte }

func (w *writer) version() { w.b = append(w.b, version) }

func (w *writer) int(n int) { w.b = binary.AppendVarint(w.b, int64(n)) }

func (w *writer) uint(n uint64) { w.b = binary.AppendUvarint(w.b, n) }

func (w *writer) string(s string) {
	w.uint(uint64(len(s)))
	w.b = append(w.b, s...)
}

// hash writes a presence byte first, because many records have none.
func (w *writer) hash(h session.Hash) {
	if h.IsZero() {
		w.b = append(w.b, 0)
		return
	}
	w.b = append(append(w.b, 1), h[:]...)
}

// time keeps the instant only: it is read back in UTC.
func (w *writer) time(t time.Time) {
	w.b = binary.AppendVarint(w.b, t.Unix())
	w.uint(uint64(t.Nanosecond())) //nolint:gosec // below 1e9
}
