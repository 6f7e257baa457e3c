// Package codec is the form in which both stores keep their records: protobuf, so that a new field is no new format. The
// place, which every request reads many of, has a smaller one: a version byte, then its fields in order, integers as varints
// and strings with their length in front.
package codec

import "errors"

// Errors of records that are not read.
var (
	// ErrCorrupt: the bytes are no record of this format.
	ErrCorrupt = errors.New("corrupt record")
	// ErrOld: an earlier version of the program wrote the record.
	ErrOld = errors.New("the record was written by an earlier version of Dewpoint, which this one cannot read: " +
		"give it an empty store (another store.path, or another store.redis.db)")
)
