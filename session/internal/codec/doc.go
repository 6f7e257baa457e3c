// Package codec is the compact binary form in which both stores keep their records: a version byte, then each field in
// order, integers as varints and strings with their length in front. It is self-contained, so a record written by one
// version of the program says so to another.
package codec

import "errors"

// ErrCorrupt: the bytes are no record of this format.
var ErrCorrupt = errors.New("corrupt record")

// The first byte of a record.
const (
	version byte = 1
	sealed  byte = 2 // the same, with its content encrypted
)
