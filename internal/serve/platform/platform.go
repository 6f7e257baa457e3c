// Package platform has what operating systems do differently.
package platform

// State is what a peek at a connection found.
type State int

// The states of a connection.
const (
	Silent State = iota // open, with nothing to read
	Readable
	Closed // by the other side, or broken
)
