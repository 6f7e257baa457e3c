// Package codec is the form in which both stores keep their records: protobuf, so that a new field is no new format. The
// place, which every request reads many of, has a smaller one: a version byte, then its fields in order, integers as varints
// and strings with their length in front.
package codec

import (
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Errors of records that are not read.
var (
	// ErrCorrupt: the bytes are no record of this format.
	ErrCorrupt = errors.New("corrupt record")
	// ErrOld: an earlier version of the program wrote the record.
	ErrOld = errors.New("the record was written by an earlier version of Dewpoint, which this one cannot read: " +
		"give it an empty store (another store.path, or another store.redis.db)")
)

// marshal encodes a record. A message without extensions and required fields always encodes.
func marshal(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

// unmarshal reads a record, or gives ErrCorrupt or ErrOld. The earlier format began with 1 or 2, which no message does.
func unmarshal(b []byte, m proto.Message) error {
	switch {
	case len(b) > 0 && (b[0] == 1 || b[0] == 2):
		return ErrOld
	case proto.Unmarshal(b, m) != nil:
		return ErrCorrupt
	}
	return nil
}

// hashBytes is what a record holds of a hash: nothing of the zero one, which many records have.
func hashBytes(h session.Hash) []byte {
	if h.IsZero() {
		return nil
	}
	return h[:]
}

func parseHash(b []byte) (h session.Hash, err error) {
	if len(b) != 0 && len(b) != len(h) {
		return h, ErrCorrupt
	}
	copy(h[:], b)
	return h, nil
}

// nanoseconds keeps the instant only: it is read back in UTC.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func instant(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds).UTC()
}
