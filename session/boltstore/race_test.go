//go:build race

package boltstore

// raced: under the race detector a damaged page ends the process, because its pointer checks cannot be recovered from.
const raced = true
