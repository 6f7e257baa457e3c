// Package codec encodes the records of both stores. Records are protobuf messages, so that a new field does not need a new
// format. Places, of which every request reads many, have a smaller encoding: a version byte, then the fields in order,
// integers as varints and strings preceded by their length.
package codec

import "errors"

// Errors of records that cannot be read.
var (
	// ErrCorrupt: the bytes are not a record of this format.
	ErrCorrupt = errors.New("corrupt record")
	// ErrOld: an earlier version of the program wrote the record.
	ErrOld = errors.New("the record was written by an earlier version of Dewpoint, which this one cannot read: " +
		"give it an empty store (another store.path, or another store.redis.db)")
)
