// Package lru has caches that keep the most recently used entries.
package lru

import lru "github.com/hashicorp/golang-lru/v2"

// Cache keeps a bounded number of entries, those that were used most recently. It may be used concurrently.
//
// It is an interface to speed up builds: every package that sees a field of the library's generic type compiles all of its methods again.
type Cache[K comparable, V any] interface {
	// Get returns the value of a key, which counts as a use.
	Get(key K) (value V, ok bool)
	Contains(key K) bool
	// Add sets the value of a key, and reports whether another entry was dropped for it.
	Add(key K, value V) (dropped bool)
	// Remove reports whether the key had a value.
	Remove(key K) (present bool)
	Purge()
	Len() int
	// Values returns the values from the least to the most recently used.
	Values() []V
	// ContainsOrAdd and PeekOrAdd add an entry only if the key has none.
	ContainsOrAdd(key K, value V) (present, dropped bool)
	PeekOrAdd(key K, value V) (previous V, present, dropped bool)
}

// New returns an empty cache of size entries, which must be positive.
func New[K comparable, V any](size int) Cache[K, V] {
	c, err := lru.New[K, V](size)
	if err != nil {
		panic(err) // the size is a constant of the caller
	}
	return c
}
