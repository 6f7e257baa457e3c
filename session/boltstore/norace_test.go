//go:build !race

package boltstore

const raced = false
