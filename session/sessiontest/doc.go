// Package sessiontest is the conformance suite of session.Store, and starts the real Redis servers that stores are
// tested against. The suite says what the contract means: a store that passes it can take the place of any other.
package sessiontest
