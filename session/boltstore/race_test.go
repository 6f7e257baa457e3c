//go:build race

package boltstore

// raced: the race detector's pointer checks end the process on a damaged page, which nothing can catch.
const raced = true
