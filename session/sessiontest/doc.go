// Package sessiontest is the conformance suite for session stores. It also starts the real Redis servers that stores are
// tested with. The suite defines what the contract means: stores that pass it are interchangeable.
package sessiontest
