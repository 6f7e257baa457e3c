//go:build !race

package quick

// raced reports whether the race detector is on.
const raced = false
