// Package codec encodes the records of both stores. Records are protobuf messages, so that a new field does not need a new
// format. Places, of which every request reads many, have a smaller encoding: a version byte, then the fields in order,
// integers as varints and strings preceded by their length.
package codec

import "errors"

// ErrCorrupt means that the bytes are not a record of this format.
var ErrCorrupt = errors.New("corrupt record")
